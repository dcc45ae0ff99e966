//! Requests: made by a server whose pops conflict, fulfilled by one whose pops do not.

use bytes::Bytes;

use super::Demands;
use crate::layout::{Id, StagedClaim, StagedElement, StagedRequest, encode_elements, successor};
use crate::limits::{
    STAGED_CLAIM_BYTES_MAX, STAGED_CLAIM_BYTES_SOFT_MAX, STAGED_CLAIM_LAPSE_MS,
    STAGED_ELEMENTS_PER_READ, STAGED_REQUEST_AGE_MAX_MS, STAGED_REQUESTS_PER_BATCH_MAX,
};
use crate::store::{Isolation, KeyValue, RangeQuery, StoreError};
use crate::types::context::{ReadContext, WriteContext};
use crate::types::key::OpenKey;

/// Of a row and its conflict, besides their keys and values.
const PUT_BACK_OVERHEAD_BYTES: usize = 100;

/// What was done for other servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fulfilled {
    /// Their requests.
    pub requests: u64,
    /// The elements that were popped for them.
    pub elements: usize,
}

impl ReadContext<'_> {
    /// The oldest requests for elements of a queue. Conflicts with nobody.
    ///
    /// # Errors
    /// When the store fails.
    pub(in crate::types) async fn read_requests(
        &self,
        data: Id,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let requests = self.layout().staged_requests(data);
        let query = RangeQuery {
            begin: &requests.begin,
            end: &requests.end,
            limit: STAGED_REQUESTS_PER_BATCH_MAX,
            reverse: false,
            isolation: Isolation::Snapshot,
        };
        self.transaction.get_range(query).await
    }
}

impl WriteContext<'_> {
    /// Asks other servers to pop for this one. Conflicts with nobody.
    pub fn stage_request(&self, key: &OpenKey, id: Id, demands: &Demands) -> Vec<u8> {
        let request = StagedRequest {
            id,
            at_ms: self.now_ms,
            from_end: demands.from_end,
            runs: demands.runs.clone(),
        };
        let row = self.layout().staged_request_key(key.data(), &request);
        self.transaction.set(&row, &request.encode());
        row
    }

    /// Pops for the servers that have asked for elements of this end of a queue, oldest request
    /// first, as long as `has_room`. To be called behind this server's own
    /// pops from that end.
    ///
    /// A request is read in a way that conflicts with others who fulfil it and with its own
    /// server, should that have taken it back.
    ///
    /// # Errors
    /// `TooLarge` where what one command wants could not be put back in one transaction, should its
    /// server have died; when the store fails.
    pub async fn fulfil_requests(
        &self,
        key: &OpenKey,
        from_end: bool,
        has_room: impl Fn() -> bool,
    ) -> Result<Fulfilled, StoreError> {
        // An expiring queue goes with its last element, which claims would have to outlive.
        if !self.may_be_ghost(&key.meta) {
            return Ok(Fulfilled::default());
        }
        let rows = self.read_requests(key.data()).await?;
        let mut fulfilled = Fulfilled::default();
        for row in rows {
            // One that cannot be read must not keep those who pop here (`quoin doctor` tells of it).
            let Ok((_, request)) = self.layout().read_staged_request(&row.key, &row.value) else {
                continue;
            };
            let is_own = request.id.instance == self.environment.ids.instance();
            let age_ms = self.now_ms.saturating_sub(request.at_ms);
            if is_own || (request.from_end != from_end && age_ms <= STAGED_REQUEST_AGE_MAX_MS) {
                continue;
            }
            if !has_room() {
                break;
            }
            self.transaction
                .add_read_conflict_range(&row.key, &successor(&row.key));
            self.transaction.clear(&row.key);
            if age_ms <= STAGED_REQUEST_AGE_MAX_MS {
                fulfilled.elements += self.fulfil(key, &request, &has_room).await?;
                fulfilled.requests += 1;
            }
        }
        Ok(fulfilled)
    }

    /// Pops for the first of a request's commands, as many as there is room for: for each all that
    /// it wants, since what others pop before the rest would come between. Answers how many elements.
    async fn fulfil(
        &self,
        key: &OpenKey,
        request: &StagedRequest,
        has_room: &impl Fn() -> bool,
    ) -> Result<usize, StoreError> {
        let mut elements: Vec<StagedElement> = Vec::new();
        let mut is_exhausted = false;
        let prefix_bytes = self.layout().data_prefix(key.data()).len();
        let mut bytes = 0_usize;
        'runs: for run in &request.runs {
            // Several commands at a time: nothing is known of how large the elements are.
            let at_once = (STAGED_ELEMENTS_PER_READ / run.count.max(1)).max(1);
            let mut left = run.commands;
            while left > 0 {
                let is_full = || bytes >= STAGED_CLAIM_BYTES_SOFT_MAX || !has_room();
                if !elements.is_empty() && is_full() {
                    break 'runs;
                }
                let commands = left.min(at_once);
                let wanted = commands.saturating_mul(run.count);
                let taken = self.take_elements(key, request.from_end, wanted).await?;
                is_exhausted = taken.len() < wanted;
                bytes += taken
                    .iter()
                    .map(|element| put_back_bytes(prefix_bytes, element))
                    .sum::<usize>();
                if bytes > STAGED_CLAIM_BYTES_MAX {
                    return Err(StoreError::TooLarge);
                }
                elements.extend(taken);
                if is_exhausted {
                    break 'runs;
                }
                left -= commands;
            }
        }
        let claim = StagedClaim {
            namespace: key.namespace,
            name: key.name.clone(),
            long_name: key.meta.long_name.clone(),
            value_type: key.meta.value_type,
            from_end: request.from_end,
            is_exhausted,
            lapses_at_ms: self.now_ms.saturating_add(STAGED_CLAIM_LAPSE_MS),
        };
        let row = self.layout().staged_claim_key(key.data(), request.id);
        self.transaction.set(&row, &claim.encode());
        let pieces: Vec<Bytes> = encode_elements(&elements);
        for (number, piece) in (0_u64..).zip(&pieces) {
            let row = self
                .layout()
                .staged_elements_key(key.data(), request.id, number);
            self.transaction.set(&row, piece);
        }
        Ok(elements.len())
    }
}

/// About what putting an element back counts for in a commit, on the safe side: two rows (those of a
/// member of a sorted set), and a conflict on each.
fn put_back_bytes(prefix_bytes: usize, element: &StagedElement) -> usize {
    let key_bytes = prefix_bytes + element.name.len();
    let value_bytes = element.value.len() + element.value.len() / 4;
    2 * (5 * key_bytes + PUT_BACK_OVERHEAD_BYTES) + value_bytes
}
