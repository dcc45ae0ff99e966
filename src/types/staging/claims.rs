//! Claims: fetched by the server that asked for the elements.

use bytes::{Bytes, BytesMut};

use super::staged::{Staged, StagedKey};
use crate::error::CommandError;
use crate::layout::{
    Id, KeyRange, Layout, Meta, StagedClaim, StagedElement, ValueType, decode_elements, successor,
};
use crate::limits::RANGE_PAGE_ROWS;
use crate::store::{Isolation, RangeQuery, ReadTransaction, StoreError};
use crate::types::context::WriteContext;
use crate::types::key::OpenKey;
use crate::types::pages::Pages;

/// A request that a server has made for its clients' commands.
#[derive(Debug, Clone)]
pub struct StagedCall {
    /// The client's database.
    pub database: u32,
    /// The queue as it was when the request was made.
    pub key: OpenKey,
    /// Names the request, and the claim.
    pub id: Id,
    /// Where the request lies.
    pub request_row: Vec<u8>,
}

impl WriteContext<'_> {
    /// Fetches what was popped for a request into `staged`, and answers whether there was a
    /// claim. Where there is none the request is taken back, so that there will be none.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn fetch_claim(
        &self,
        call: &StagedCall,
        staged: &Staged,
    ) -> Result<bool, StoreError> {
        let data = call.key.data();
        let row = self.layout().staged_claim_key(data, call.id);
        // Whoever fulfils the request at this time writes this row and conflicts, or clears the
        // request and conflicts.
        let (claim, elements) = futures_util::try_join!(
            self.transaction.get(&row, Isolation::Serializable),
            read_claimed_elements(self.layout(), self.transaction, data, call.id)
        )?;
        let Some(claim) = claim else {
            self.transaction.clear(&call.request_row);
            return Ok(false);
        };
        let claim = StagedClaim::decode(&claim)?;
        self.clear_claim(data, call.id);
        staged.add(StagedKey {
            key: call.key.clone(),
            from_end: claim.from_end,
            elements,
            taken: 0,
            is_exhausted: claim.is_exhausted,
        });
        Ok(true)
    }

    /// Clears a claim that was read serializably, and answers its elements.
    pub(super) async fn take_claim(
        &self,
        data: Id,
        id: Id,
    ) -> Result<Vec<StagedElement>, StoreError> {
        let elements = read_claimed_elements(self.layout(), self.transaction, data, id).await?;
        self.clear_claim(data, id);
        Ok(elements)
    }

    fn clear_claim(&self, data: Id, id: Id) {
        self.transaction
            .clear(&self.layout().staged_claim_key(data, id));
        let KeyRange { begin, end } = self.layout().staged_elements(data, id);
        self.transaction.clear_range(&begin, &end);
    }

    /// Puts back what no command has taken: what was popped for a client that has left. Where the
    /// queue is not there any more, because this transaction has removed it or given it another
    /// name, that has to be done before its commands ([`Signals::recall`]).
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// [`Signals::recall`]: crate::types::signals::Signals::recall
    pub async fn give_back_rest(&self, staged: &Staged) -> Result<(), CommandError> {
        let keys = std::mem::take(&mut *staged.keys.borrow_mut());
        for staged in keys {
            let elements = staged.left().to_vec();
            if !self
                .give_back(&staged.key, elements, staged.from_end)
                .await?
            {
                self.signals.recall(staged.key);
            }
        }
        Ok(())
    }

    /// Puts elements of a claim back to the end that they came from, if the queue is still there;
    /// answers whether it is. A queue that was deleted since then took them along.
    pub(super) async fn give_back(
        &self,
        key: &OpenKey,
        elements: Vec<StagedElement>,
        from_end: bool,
    ) -> Result<bool, CommandError> {
        if elements.is_empty() {
            return Ok(true);
        }
        let meta = self
            .transaction
            .get(&key.meta_key, Isolation::Serializable)
            .await?;
        let meta = meta.map(|value| Meta::decode(&value)).transpose()?;
        match meta {
            Some(meta) if meta.data == key.data() && !self.is_expired(&meta) => {
                let key = OpenKey {
                    meta,
                    ..key.clone()
                };
                self.put_back(&key, elements, from_end).await?;
                Ok(true)
            }
            _ => {
                tracing::debug!("elements of a claim belong to no queue any more");
                Ok(false)
            }
        }
    }

    /// Ends all claims on a queue, whose elements go back: before it gets another name or an
    /// expiry, after which they would not find it. The servers that asked for them pop anew.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn recall_claims(&self, key: &OpenKey) -> Result<(), CommandError> {
        if self.environment.capabilities.single_writer {
            return Ok(());
        }
        let claims = self.layout().staged_claims(key.data());
        // Nor may a request be fulfilled that was made under the old name.
        let requests = self.layout().staged_requests(key.data());
        self.transaction
            .add_read_conflict_range(&requests.begin, &requests.end);
        self.transaction.clear_range(&requests.begin, &requests.end);
        let mut returning = Vec::new();
        let mut pages = Pages::new(self, claims, false, 0);
        while let Some(rows) = pages.next().await? {
            for row in rows {
                let (data, id) = self.layout().read_staged_claim_key(&row.key)?;
                let from_end = StagedClaim::decode(&row.value)?.from_end;
                returning.push((self.take_claim(data, id).await?, from_end));
            }
        }
        innermost_first(&mut returning, |(elements, from_end)| {
            let first = elements.first().map(|first| &first.name);
            (first, key.meta.value_type, *from_end)
        });
        for (elements, from_end) in returning {
            self.give_back(key, elements, from_end).await?;
        }
        Ok(())
    }

    /// Whether elements of a queue are claimed and not fetched. Conflicts with whoever claims
    /// some.
    pub(in crate::types) async fn has_claims(&self, key: &OpenKey) -> Result<bool, StoreError> {
        has_claims(self.layout(), self.transaction, key.data()).await
    }
}

/// Sorts claims so that what is further inside goes back first, and is not put in front of the
/// rest. `place`: the name of a claim's first element, the queue's type, and whether it was popped
/// from the queue's end.
pub(super) fn innermost_first<T>(
    claims: &mut [T],
    place: impl Fn(&T) -> (Option<&Bytes>, ValueType, bool),
) {
    claims.sort_by(|one, other| {
        let ((one, value_type, from_end), (other, _, other_end)) = (place(one), place(other));
        let queue = &value_type.kind().queue;
        if queue.as_ref().is_some_and(|queue| queue.is_oldest_first) {
            return other.cmp(&one);
        }
        from_end.cmp(&other_end).then_with(|| match from_end {
            true => one.cmp(&other),
            false => other.cmp(&one),
        })
    });
}

/// Whether elements of a queue's data are claimed and not fetched. Conflicts with whoever claims
/// some.
///
/// # Errors
/// When the store fails.
pub async fn has_claims(
    layout: &Layout,
    transaction: &dyn ReadTransaction,
    data: Id,
) -> Result<bool, StoreError> {
    let claims = layout.staged_claims(data);
    let rows = transaction
        .get_range(RangeQuery {
            begin: &claims.begin,
            end: &claims.end,
            limit: 1,
            reverse: false,
            isolation: Isolation::Serializable,
        })
        .await?;
    Ok(!rows.is_empty())
}

/// The elements of a claim. Conflicts with nobody: for that is the claim's own row.
///
/// # Errors
/// `Corrupt` where they cannot be read, or when the store fails.
pub async fn read_claimed_elements(
    layout: &Layout,
    transaction: &dyn ReadTransaction,
    data: Id,
    id: Id,
) -> Result<Vec<StagedElement>, StoreError> {
    let KeyRange { mut begin, end } = layout.staged_elements(data, id);
    let mut text = BytesMut::new();
    loop {
        let rows = transaction
            .get_range(RangeQuery {
                begin: &begin,
                end: &end,
                limit: RANGE_PAGE_ROWS,
                reverse: false,
                isolation: Isolation::Snapshot,
            })
            .await?;
        for row in &rows {
            text.extend_from_slice(&row.value);
        }
        match rows.last() {
            Some(last) if rows.len() >= RANGE_PAGE_ROWS => begin = successor(&last.key),
            _ => break,
        }
    }
    if text.is_empty() {
        return Ok(Vec::new());
    }
    Ok(decode_elements(text.freeze())?)
}
