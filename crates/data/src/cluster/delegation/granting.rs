//! Requests: made by a server whose pops conflict, granted by one whose pops do not.

use bytes::Bytes;

use super::expiry::{GRANT_EXPIRY_MS, REQUEST_AGE_MAX_MS};
use super::{Demands, Grant, PoppedElement};
use crate::keyspace::key::OpenKey;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_layout::{Id, PopRequest, encode_elements, successor};
use quoin_store::{Isolation, KeyValue, RangeQuery, StoreError};

/// Requests that one batch grants.
const REQUESTS_PER_BATCH_MAX: usize = 64;
/// Elements that are popped for a request at a time.
const ELEMENTS_PER_READ: usize = 128;
/// What putting the elements of a grant back counts for in a commit, beyond which no further command
/// of the request is granted.
const GRANT_BYTES_SOFT_MAX: usize = 2_000_000;
/// The same of a whole grant: a transaction has to take it, with what fills a batch.
const GRANT_BYTES_MAX: usize = 6_000_000;
/// Of a row and its conflict, besides their keys and values.
const PUT_BACK_OVERHEAD_BYTES: usize = 100;

/// What was popped for other servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Granted {
    /// Their requests that were granted.
    pub requests: u64,
    /// The elements that were popped for them.
    pub elements: usize,
}

impl ReadContext<'_> {
    /// The oldest requests for elements of a queue. Causes no conflicts.
    pub(crate) async fn read_requests(&self, data: Id) -> Result<Vec<KeyValue>, StoreError> {
        let requests = self.layout().pop_requests(data);
        let query = RangeQuery {
            begin: &requests.begin,
            end: &requests.end,
            limit: REQUESTS_PER_BATCH_MAX,
            reverse: false,
            isolation: Isolation::Snapshot,
        };
        self.transaction.get_range(query).await
    }
}

impl WriteContext<'_> {
    /// Asks other servers to pop for this one, and answers the request's row. Causes no conflicts.
    pub fn make_request(&self, key: &OpenKey, id: Id, demands: &Demands) -> Vec<u8> {
        let request = PopRequest {
            id,
            at_ms: self.now_ms,
            from_end: demands.from_end,
            runs: demands.runs.clone(),
        };
        let row = self.layout().pop_request_key(key.data(), &request);
        self.transaction.set(&row, &request.encode());
        row
    }

    /// Pops for the servers that have requested elements of this end of a queue, oldest request
    /// first, as long as `has_room`. To be called after this server's own pops from that end.
    ///
    /// Conflicts with other servers that grant the same request, and with its own server if that
    /// clears it.
    ///
    /// # Errors
    /// `TooLarge` where one command wants more than one transaction can return to the queue, if its
    /// server dies.
    pub async fn grant_requests(
        &self,
        key: &OpenKey,
        from_end: bool,
        has_room: impl Fn() -> bool,
    ) -> Result<Granted, StoreError> {
        // An expiring queue goes with its last element, which grants would have to outlive.
        if !self.may_be_retained(&key.meta) {
            return Ok(Granted::default());
        }
        let rows = self.read_requests(key.data()).await?;
        let mut granted = Granted::default();
        for row in rows {
            // One that cannot be read must not stop others that pop here. `quoin doctor` reports it.
            let Ok((_, request)) = self.layout().read_pop_request(&row.key, &row.value) else {
                continue;
            };
            let is_own = request.id.instance == self.environment.ids.instance();
            let is_old = self.now_ms.saturating_sub(request.at_ms) > REQUEST_AGE_MAX_MS;
            if is_own || (request.from_end != from_end && !is_old) {
                continue;
            }
            if !has_room() {
                break;
            }
            self.transaction
                .add_read_conflict_range(&row.key, &successor(&row.key));
            self.transaction.clear(&row.key);
            if !is_old {
                granted.elements += self.grant(key, &request, &has_room).await?;
                granted.requests += 1;
            }
        }
        if granted.elements > 0 {
            self.invalidate(key);
        }
        Ok(granted)
    }

    /// Pops for the first of a request's commands, as many as there is room for: for each all that
    /// it wants, since what others pop before the rest would come between. Answers how many elements.
    async fn grant(
        &self,
        key: &OpenKey,
        request: &PopRequest,
        has_room: &impl Fn() -> bool,
    ) -> Result<usize, StoreError> {
        let mut elements: Vec<PoppedElement> = Vec::new();
        let mut is_exhausted = false;
        let prefix_bytes = self.layout().data_prefix(key.data()).len();
        let mut bytes = 0_usize;
        'runs: for run in &request.runs {
            // Several commands at a time: nothing is known of how large the elements are.
            let at_once = (ELEMENTS_PER_READ / run.count.max(1)).max(1);
            let mut left = run.commands;
            while left > 0 {
                let is_full = || bytes >= GRANT_BYTES_SOFT_MAX || !has_room();
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
                if bytes > GRANT_BYTES_MAX {
                    return Err(StoreError::TooLarge);
                }
                elements.extend(taken);
                if is_exhausted {
                    break 'runs;
                }
                left -= commands;
            }
        }
        let grant = Grant {
            namespace: key.namespace,
            name: key.name.clone(),
            long_name: key.meta.long_name.clone(),
            value_type: key.meta.value_type,
            from_end: request.from_end,
            is_exhausted,
            expires_at_ms: self.now_ms.saturating_add(GRANT_EXPIRY_MS),
        };
        let row = self.layout().grant_key(key.data(), request.id);
        self.transaction.set(&row, &grant.encode());
        let pieces: Vec<Bytes> = encode_elements(&elements);
        for (number, piece) in (0_u64..).zip(&pieces) {
            let row = self
                .layout()
                .grant_piece_key(key.data(), request.id, number);
            self.transaction.set(&row, piece);
        }
        Ok(elements.len())
    }
}

/// About what putting an element back counts for in a commit, on the safe side: two rows (those of a
/// member of a sorted set), and a conflict on each.
fn put_back_bytes(prefix_bytes: usize, element: &PoppedElement) -> usize {
    let key_bytes = prefix_bytes + element.name.len();
    let value_bytes = element.value.len() + element.value.len() / 4;
    2 * (5 * key_bytes + PUT_BACK_OVERHEAD_BYTES) + value_bytes
}
