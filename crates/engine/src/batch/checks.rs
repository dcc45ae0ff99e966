//! Which of its keys a blocking command reads, on its first run and when its client is woken ([decision
//! 008](../../../docs/understand/decisions/008-served-in-the-batch.md#quiet-keys)).

use std::collections::HashSet;

use bytes::Bytes;

use super::Batch;
use super::unread::Unread;
use crate::call::{Call, Work};
use crate::waiters::Waiter;
use quoin_base::limits::RELAY_ROWS_PER_BATCH;
use quoin_data::command::access::Access;
use quoin_data::keyspace::key::ClientKey;
use quoin_data::prefetch::{Prefetch, PrefetchPlan};
use quoin_data::unit::Unit;
use quoin_data::unit::host::Change;
use quoin_data::unit::known::KnownKeys;

/// Which keys a waiter's command checks, if the command takes from the first key that has something.
#[derive(Clone, Copy)]
pub(super) enum Check<'k> {
    /// All of them.
    All,
    /// Keys that one command or EXEC of the batch made ready, keys that this server does not know to be empty, and
    /// keys that other servers may have filled. In Redis, any other key would already have served the client.
    Ready(&'k HashSet<ClientKey>),
    /// This key, and other keys that are not quiet.
    Key(&'k ClientKey),
}

/// Which of a waiter's keys its command reads. The others are known to be empty.
pub(super) enum KeysToCheck {
    All,
    Only(HashSet<Bytes>),
    Without(HashSet<Bytes>),
}

impl KeysToCheck {
    pub(super) fn known(&self) -> KnownKeys<'_> {
        match self {
            KeysToCheck::All => KnownKeys::Nothing,
            KeysToCheck::Only(keys) => KnownKeys::OnlyThese(keys),
            KeysToCheck::Without(keys) => KnownKeys::Empty(keys),
        }
    }
}

/// Keys of a woken command that are read before it is known whether the key that wakes it has something.
const WOKEN_KEYS_MAX: usize = 64;

/// The reads of a blocking command that leaves out its quiet keys.
fn reads_without(waiter: &Waiter, quiet: &HashSet<Bytes>) -> Vec<(ClientKey, Prefetch)> {
    let command = &waiter.invocation;
    let mut access = Access::of(command.row, command.database, &command.arguments);
    access.leave_out(quiet);
    access.prefetch
}

impl Batch<'_> {
    /// Which keys a blocking command reads on its first run.
    pub(super) fn keys_of_new(&self, waiter: &Waiter, unit: &Unit<'_>) -> KeysToCheck {
        KeysToCheck::Without(self.still_quiet(waiter, unit))
    }

    /// The keys of a waiter that are empty in the attempt's snapshot and that the batch has not changed.
    fn still_quiet(&self, waiter: &Waiter, unit: &Unit<'_>) -> HashSet<Bytes> {
        let mut quiet = self.shared.waiters.quiet_keys(waiter);
        let database = waiter.invocation.database;
        quiet.retain(|key| {
            let key = key.clone();
            !self.unread.concerns(&ClientKey { database, key })
        });
        if !quiet.is_empty() {
            let changes = unit.signals.changes();
            if changes.contains(&Change::AllKeys) {
                return HashSet::new();
            }
            for key in changes.iter().filter_map(Change::watched_key) {
                quiet.remove(&key.key);
            }
        }
        quiet
    }

    /// Plans the reads of a call. For a blocking command, these are its keys that are not quiet
    /// when the batch begins. Returns whether it has quiet keys. `woken` collects the positions of
    /// woken waiters whose commands are already planned.
    pub(super) fn plan_call(
        &self,
        call: &Call,
        plan: &mut PrefetchPlan,
        woken: &mut HashSet<u64>,
    ) -> bool {
        match (&call.work, &call.waiter) {
            (Work::WakeUp(key, _), _) => self.plan_wake_up(key, plan, woken),
            (_, Some(waiter)) => {
                let quiet = self.shared.waiters.quiet_keys(waiter);
                plan.add_all(&reads_without(waiter, &quiet));
                !quiet.is_empty()
            }
            (_, None) => {
                plan.add_all(&call.access.prefetch);
                false
            }
        }
    }

    /// Plans reading the woken key, and some reads of its first waiter's command. Plans no more,
    /// because the key may be empty, and a waiter on thousands of keys may be woken by each of
    /// them.
    fn plan_wake_up(
        &self,
        key: &ClientKey,
        plan: &mut PrefetchPlan,
        woken: &mut HashSet<u64>,
    ) -> bool {
        plan.add(key, &Prefetch::Meta);
        let first = self.shared.waiters.first_command(key);
        let Some(waiter) = first.filter(|waiter| woken.insert(waiter.position())) else {
            return false;
        };
        let (quiet, reads) = self.reads_of_woken(&waiter, key);
        for (of, prefetch) in reads.iter().take(WOKEN_KEYS_MAX) {
            plan.add(of, prefetch);
        }
        !quiet.is_empty()
    }

    /// The other quiet keys of a waiter that `key` wakes, and the reads of its command.
    fn reads_of_woken(
        &self,
        waiter: &Waiter,
        key: &ClientKey,
    ) -> (HashSet<Bytes>, Vec<(ClientKey, Prefetch)>) {
        let mut quiet = self.shared.waiters.quiet_keys(waiter);
        quiet.remove(&key.key);
        let reads = reads_without(waiter, &quiet);
        (quiet, reads)
    }

    /// Reads the other keys of the first waiter of a key that has something, if there are more than were planned.
    pub(super) async fn read_keys_of_woken(&self, key: &ClientKey, unit: &Unit<'_>) {
        if !self.environment.capabilities.reads_wait {
            return;
        }
        let first = self.shared.waiters.first_command(key);
        let Some(waiter) = first.filter(|waiter| waiter.spec.keys.len() > WOKEN_KEYS_MAX) else {
            return;
        };
        let mut plan = PrefetchPlan::default();
        plan.add_all(&self.reads_of_woken(&waiter, key).1);
        let context = unit.read_context(0);
        context.prefetch(&plan, &self.shared.locations).await;
    }

    /// Reads what other servers have reported up to the attempt's snapshot.
    pub(super) async fn read_unread(&self, unit: &Unit<'_>) -> Unread {
        let Some(mut reader) = self.log_reader.clone() else {
            return Unread::Anything;
        };
        let layout = &self.environment.layout;
        let transaction = unit.transaction;
        match reader.read(transaction, layout, RELAY_ROWS_PER_BATCH).await {
            Ok(news) if !news.has_more => Unread::News(news),
            Ok(_) => Unread::Anything,
            Err(error) => {
                tracing::trace!(%error, "cannot read the end of the log");
                Unread::Anything
            }
        }
    }

    /// Which of its keys a waiter's command reads when it is woken.
    pub(super) fn keys_to_check(
        &self,
        waiter: &Waiter,
        check: Check<'_>,
        unit: &Unit<'_>,
    ) -> KeysToCheck {
        if !waiter.spec.takes_first || waiter.spec.keys.len() < 2 {
            return KeysToCheck::All;
        }
        let waiters = &self.shared.waiters;
        match check {
            Check::All => KeysToCheck::All,
            Check::Ready(ready) => KeysToCheck::Only(waiters.keys_to_try(waiter, ready)),
            Check::Key(key) => {
                let mut quiet = self.still_quiet(waiter, unit);
                quiet.remove(&key.key);
                KeysToCheck::Without(quiet)
            }
        }
    }
}
