//! Which of its keys a blocking command reads, on its first run and when its client is woken ([decision
//! 008](../../../docs/understand/decisions/008-served-in-the-batch.md#quiet-keys)).

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use super::Batch;
use crate::call::{Call, Work};
use crate::waiters::Waiter;
use quoin_data::command::access::Access;
use quoin_data::keyspace::key::ClientKey;
use quoin_data::prefetch::PrefetchPlan;
use quoin_data::unit::Unit;
use quoin_data::unit::host::Change;
use quoin_data::unit::known::KnownKeys;

/// Which keys a waiter's command checks, if the command takes from the first key that has something.
#[derive(Clone, Copy)]
pub(super) enum Look<'k> {
    /// All of them.
    All,
    /// Keys that one command or EXEC of the batch made ready, keys that this server does not know to be empty, and
    /// keys that other servers may have filled. In Redis, any other key would already have served the client.
    Ready(&'k HashSet<ClientKey>),
    /// This key, the keys before it, and other keys that are not quiet.
    Key(&'k ClientKey),
}

/// What is known about a waiter's keys.
pub(super) enum KeysByLook {
    All,
    Only(HashSet<Bytes>),
    WereEmpty(HashSet<Bytes>),
}

impl KeysByLook {
    pub(super) fn known(&self) -> KnownKeys<'_> {
        match self {
            KeysByLook::All => KnownKeys::Nothing,
            KeysByLook::Only(keys) => KnownKeys::OnlyThese(keys),
            KeysByLook::WereEmpty(keys) => KnownKeys::WereEmpty(keys),
        }
    }
}

/// A command that reads its quiet keys only if it finds something in another key.
pub(super) struct PostponedLook {
    waiter: Arc<Waiter>,
    quiet: HashSet<Bytes>,
}

impl PostponedLook {
    /// Plans reads of the keys that are not quiet now, as the batch begins. Some may have been quiet when the client
    /// came.
    pub(super) fn plan(&self, plan: &mut PrefetchPlan) {
        let command = &self.waiter.invocation;
        let mut access = Access::of(command.row, command.database, &command.arguments);
        access.leave_out(&self.quiet);
        plan.add_all(&access.prefetch);
    }

    /// Reads the lengths of the quiet keys that precede a key with something in it.
    pub(super) async fn prefetch(&self, unit: &Unit<'_>) {
        if self.quiet.is_empty() {
            return;
        }
        let context = unit.read_context(self.waiter.invocation.database);
        let keys = &self.waiter.spec.keys;
        if let Err(error) = context.prefetch_passed_over(keys, &self.quiet).await {
            tracing::trace!(%error, "nothing was prefetched");
        }
    }
}

impl Batch<'_> {
    /// What is known about the keys of a blocking command on its first run.
    pub(super) fn keys_of_new(&self, waiter: &Waiter, unit: &Unit<'_>) -> KeysByLook {
        KeysByLook::WereEmpty(self.still_quiet(waiter, unit))
    }

    /// The quiet keys of a waiter that the batch has not changed.
    fn still_quiet(&self, waiter: &Waiter, unit: &Unit<'_>) -> HashSet<Bytes> {
        let mut quiet = self.shared.waiters.quiet_keys(waiter);
        if !quiet.is_empty() {
            let changes = unit.signals.changes();
            for key in changes.iter().filter_map(Change::watched_key) {
                quiet.remove(&key.key);
            }
        }
        quiet
    }

    /// What to read for a woken client, or for a blocking command with quiet keys on its first run.
    pub(super) fn postponed_look(&self, call: &Call) -> Option<PostponedLook> {
        let waiters = &self.shared.waiters;
        if let Work::WakeUp(key, _) = &call.work {
            let waiter = waiters.first_command(key)?;
            let mut quiet = waiters.quiet_keys(&waiter);
            quiet.remove(&key.key);
            return Some(PostponedLook { waiter, quiet });
        }
        let waiter = Arc::clone(call.waiter.as_ref()?);
        let quiet = waiters.quiet_keys(&waiter);
        (!quiet.is_empty()).then_some(PostponedLook { waiter, quiet })
    }

    /// What is known about a waiter's keys when it is woken.
    pub(super) fn keys_by_look(
        &self,
        waiter: &Waiter,
        look: Look<'_>,
        unit: &Unit<'_>,
    ) -> KeysByLook {
        if !waiter.spec.takes_first || waiter.spec.keys.len() < 2 {
            return KeysByLook::All;
        }
        let waiters = &self.shared.waiters;
        match look {
            Look::All => KeysByLook::All,
            Look::Ready(ready) => KeysByLook::Only(waiters.keys_to_try(waiter, ready)),
            Look::Key(key) => {
                let mut quiet = self.still_quiet(waiter, unit);
                quiet.remove(&key.key);
                KeysByLook::WereEmpty(quiet)
            }
        }
    }
}
