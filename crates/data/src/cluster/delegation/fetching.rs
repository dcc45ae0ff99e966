//! The server that has made a request fetches the grant.

use bytes::BytesMut;

use super::held::{HeldGrant, HeldGrants};
use super::{Grant, PoppedElement};
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_base::limits::RANGE_PAGE_ROWS;
use quoin_layout::{Id, KeyRange, Layout, decode_elements, successor};
use quoin_store::{Isolation, RangeQuery, ReadTransaction, StoreError};

/// A request that a server has made for its clients' commands.
#[derive(Debug, Clone)]
pub struct MadeRequest {
    /// The client's database.
    pub database: u32,
    /// The queue as it was when the request was made.
    pub key: OpenKey,
    /// Names the request, and the grant.
    pub id: Id,
    /// The request's row.
    pub row: Vec<u8>,
}

impl WriteContext<'_> {
    /// Fetches what was popped for a request into `held`, and answers whether there was a grant.
    /// If there was none the request is cleared, so that there will be none.
    pub async fn fetch_grant(
        &self,
        request: &MadeRequest,
        held: &HeldGrants,
    ) -> Result<bool, StoreError> {
        let data = request.key.data();
        let row = self.layout().grant_key(data, request.id);
        // A server that grants the request at this time writes this row and clears the request.
        // One of the two conflicts.
        let (grant, elements) = futures_util::try_join!(
            self.transaction.get(&row, Isolation::Serializable),
            read_granted_elements(self.layout(), self.transaction, data, request.id)
        )?;
        let Some(grant) = grant else {
            self.transaction.clear(&request.row);
            return Ok(false);
        };
        let grant = Grant::decode(&grant)?;
        self.clear_grant(data, request.id);
        held.add(HeldGrant {
            key: request.key.clone(),
            from_end: grant.from_end,
            elements,
            taken: 0,
            is_exhausted: grant.is_exhausted,
            has_returned: false,
        });
        Ok(true)
    }

    /// Clears a grant that was read serializably, and answers its elements.
    pub(super) async fn take_grant(
        &self,
        data: Id,
        id: Id,
    ) -> Result<Vec<PoppedElement>, StoreError> {
        let elements = read_granted_elements(self.layout(), self.transaction, data, id).await?;
        self.clear_grant(data, id);
        Ok(elements)
    }

    fn clear_grant(&self, data: Id, id: Id) {
        self.transaction.clear(&self.layout().grant_key(data, id));
        let KeyRange { begin, end } = self.layout().grant_pieces(data, id);
        self.transaction.clear_range(&begin, &end);
    }
}

/// The elements of a grant. Causes no conflicts: the grant's own row does.
///
/// # Errors
/// `Corrupt` where they cannot be read, or when the store fails.
pub async fn read_granted_elements(
    layout: &Layout,
    transaction: &dyn ReadTransaction,
    data: Id,
    id: Id,
) -> Result<Vec<PoppedElement>, StoreError> {
    let KeyRange { mut begin, end } = layout.grant_pieces(data, id);
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
