//! The bound on the memory of all clients together (`maxmemory-clients`). As in Redis, clients are
//! evicted beyond it, the largest first. Before that, each client's share shrinks as their number
//! grows, so that clients that merely read slowly are slowed down instead.

use std::sync::atomic::Ordering;

use crate::clients;
use crate::clients::ClientRecord;
use crate::state::ServerState;
use quoin_base::limits::{
    CLIENT_EVICTION_LIMIT_BYTES_MIN, SUBMISSION_REPLY_BYTES_MAX, SUBMISSION_REPLY_BYTES_MIN,
};

/// Replies may use one part in this number of `maxmemory-clients`. All clients share it.
const REPLY_SHARES: u64 = 8;
/// Clients are evicted until they take this number of sixteenths of `maxmemory-clients`. Without this
/// reserve, the next bytes of any client would start another pass over all clients.
const TARGET_SIXTEENTHS: u64 = 15;

/// The setting `maxmemory-clients` in bytes. `None` if there is no bound.
fn limit_bytes(state: &ServerState) -> Option<u64> {
    let memory_bytes = state.memory_bytes.load(Ordering::Relaxed);
    let limit = state.config.live.maxmemory_clients().bytes(memory_bytes);
    limit.map(|bytes| bytes.max(CLIENT_EVICTION_LIMIT_BYTES_MIN))
}

/// Bytes of replies that a client may have at a time. The last reply may exceed it.
pub(super) fn reply_share_bytes(state: &ServerState) -> usize {
    let Some(limit) = limit_bytes(state) else {
        return SUBMISSION_REPLY_BYTES_MAX;
    };
    let share = limit / REPLY_SHARES / state.clients.count().max(1) as u64;
    usize::try_from(share)
        .unwrap_or(usize::MAX)
        .clamp(SUBMISSION_REPLY_BYTES_MIN, SUBMISSION_REPLY_BYTES_MAX)
}

/// Records a client's memory, and evicts clients if all together use too much.
pub(super) fn note_client_memory(state: &ServerState, client: &ClientRecord, bytes: usize) {
    state.clients.note_held(client, bytes);
    // If no client was left to evict, `cron` is the next to try.
    if !state.clients.is_exhausted() {
        evict_if_needed(state);
    }
}

/// Evicts clients if all together use too much memory.
pub(super) fn evict_if_needed(state: &ServerState) {
    let Some(limit) = limit_bytes(state) else {
        return;
    };
    let held = state.clients.memory().bytes() as u64;
    if held < limit {
        return;
    }
    let target = limit / 16 * TARGET_SIXTEENTHS;
    let target = usize::try_from(target).unwrap_or(usize::MAX);
    let now_ms = state.clock.now_ms();
    let is_enough = state.clients.evict(target, |client| {
        state
            .disconnections
            .evicted(|| clients::describe(client, now_ms));
    });
    if !is_enough {
        state.disconnections.nobody_to_evict();
    }
}
