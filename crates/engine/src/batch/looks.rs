//! Which of its keys a blocking command reads, on its first run and when its client is woken ([decision
//! 008](../../../docs/understand/decisions/008-served-in-the-batch.md#quiet-keys)).

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use super::Batch;
use super::unheard::Unheard;
use crate::call::{Call, Work};
use crate::waiters::Waiter;
use quoin_base::limits::RELAY_ROWS_PER_BATCH;
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
    /// This key, and other keys that are not quiet.
    Key(&'k ClientKey),
}

/// What is known about a waiter's keys.
pub(super) enum KeysByLook {
    All,
    Only(HashSet<Bytes>),
    Without(HashSet<Bytes>),
}

impl KeysByLook {
    pub(super) fn known(&self) -> KnownKeys<'_> {
        match self {
            KeysByLook::All => KnownKeys::Nothing,
            KeysByLook::Only(keys) => KnownKeys::OnlyThese(keys),
            KeysByLook::Without(keys) => KnownKeys::Empty(keys),
        }
    }
}

impl Batch<'_> {
    /// What is known about the keys of a blocking command on its first run.
    pub(super) fn keys_of_new(&self, waiter: &Waiter, unit: &Unit<'_>) -> KeysByLook {
        KeysByLook::Without(self.still_quiet(waiter, unit))
    }

    /// The keys of a waiter that are empty in the attempt's snapshot and that the batch has not changed.
    fn still_quiet(&self, waiter: &Waiter, unit: &Unit<'_>) -> HashSet<Bytes> {
        let mut quiet = self.shared.waiters.quiet_keys(waiter);
        let database = waiter.invocation.database;
        quiet.retain(|key| {
            let key = key.clone();
            !self.unheard.concerns(&ClientKey { database, key })
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

    /// Plans the reads of a call. Of a blocking command these are its keys that are not quiet as the batch begins.
    /// Returns whether there are quiet ones.
    pub(super) fn plan_call(&self, call: &Call, plan: &mut PrefetchPlan) -> bool {
        let waiters = &self.shared.waiters;
        let (waiter, woken) = match (&call.work, &call.waiter) {
            (Work::WakeUp(key, _), _) => match waiters.first_command(key) {
                Some(waiter) => (waiter, Some(key)),
                None => return false,
            },
            (_, Some(waiter)) => (Arc::clone(waiter), None),
            (_, None) => {
                plan.add_all(&call.access.prefetch);
                return false;
            }
        };
        let mut quiet = waiters.quiet_keys(&waiter);
        if let Some(key) = woken {
            quiet.remove(&key.key);
        }
        let command = &waiter.invocation;
        let mut access = Access::of(command.row, command.database, &command.arguments);
        access.leave_out(&quiet);
        plan.add_all(&access.prefetch);
        !quiet.is_empty()
    }

    /// Reads what other servers have told up to the attempt's snapshot.
    pub(super) async fn hear_the_rest(&self, unit: &Unit<'_>) -> Unheard {
        let Some(mut reader) = self.heard.clone() else {
            return Unheard::Anything;
        };
        let layout = &self.environment.layout;
        let transaction = unit.transaction;
        match reader.read(transaction, layout, RELAY_ROWS_PER_BATCH).await {
            Ok(news) if !news.has_more => Unheard::News(news),
            Ok(_) => Unheard::Anything,
            Err(error) => {
                tracing::trace!(%error, "the end of the log was not read");
                Unheard::Anything
            }
        }
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
                KeysByLook::Without(quiet)
            }
        }
    }
}
