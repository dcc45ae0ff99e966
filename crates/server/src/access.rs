//! Access control: which user a client is, what it may do, the log of refusals, and which clients are
//! disconnected when users change. The meaning of rules is in [`quoin_acl`].

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::clients;
use crate::clients::{ClientRecord, ClientRegistry, Scope};
use crate::pubsub::PubSub;
use crate::single_flight::SingleFlight;
use quoin_acl::log::{AclLog, Context, Event};
use quoin_acl::{DEFAULT_USER, Defaults, Definition, Denial, Reason, Replaced, User, Users};
use quoin_base::clock::Clock;
use quoin_config::RuntimeConfig;
use quoin_data::command::row::Row;
use quoin_data::error::CommandError;
use quoin_data::table;
use quoin_data::unit::host::{ClientRights, NO_CLIENT, RefusedCall, RefusedPart, Rights};

/// Users, and the log of what they were refused.
pub(super) struct AccessControl {
    /// The users.
    pub(super) users: Users,
    /// The log of refusals.
    pub(super) log: AclLog,
    /// The version of the stored users that this server has loaded ([`crate::users`]).
    pub(super) loaded: SingleFlight<u64, CommandError>,
    config: Arc<RuntimeConfig>,
    clock: Arc<dyn Clock>,
    clients: Arc<ClientRegistry>,
    pubsub: Arc<PubSub>,
}

impl AccessControl {
    /// Starts with one user, `default`. Its password is the setting `requirepass`.
    pub(super) fn new(
        config: Arc<RuntimeConfig>,
        clock: Arc<dyn Clock>,
        clients: Arc<ClientRegistry>,
        pubsub: Arc<PubSub>,
    ) -> Self {
        Self {
            users: Users::new(default_user(&config)),
            log: AclLog::default(),
            loaded: SingleFlight::new(0),
            config,
            clock,
            clients,
            pubsub,
        }
    }

    /// Defaults of new users.
    pub(super) fn defaults(&self) -> Defaults {
        Defaults {
            all_channels: self.config.acl_pubsub_all_channels(),
        }
    }

    /// The user `default` as the settings have it.
    pub(super) fn configured_default(&self) -> Definition {
        default_user(&self.config)
    }

    /// Makes the changed setting `requirepass` the password of `default`.
    pub(super) fn take_requirepass(&self) {
        let password = self.config.requirepass();
        let name = DEFAULT_USER.as_bytes();
        let changed = self.users.change(name, |before| {
            let mut definition = before.cloned().unwrap_or_else(Definition::unrestricted);
            definition.set_only_password(password.as_deref().map(str::as_bytes));
            Ok::<_, std::convert::Infallible>(definition)
        });
        let Ok(_) = changed;
    }

    /// The user of this name, if the password is right. The time that it takes does not reveal whether
    /// the name exists.
    pub(super) fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        let user = self.users.find(name);
        let is_right = match &user {
            Some(user) => user.definition().accepts(password),
            None => Definition::new(Defaults::default()).accepts(password),
        };
        user.filter(|_| is_right)
    }

    /// Creates or changes a user by applying rules, all or none.
    ///
    /// # Errors
    /// Redis's text, without its code.
    pub(super) fn set_user(&self, name: &[u8], rules: &[Bytes]) -> Result<(), String> {
        let defaults = self.defaults();
        let (user, before) = self.users.change(name, |before| match before {
            Some(before) => before.with_rules(rules, defaults),
            None => Definition::new(defaults).with_rules(rules, defaults),
        })?;
        if let Some(before) = before {
            self.disconnect_subscribers(&user, &before);
        }
        Ok(())
    }

    /// Deletes a user and disconnects its clients. Returns whether the user existed.
    pub(super) fn delete_user(&self, name: &[u8]) -> bool {
        let deleted = self.users.delete(name);
        self.disconnect(deleted.as_slice());
        deleted.is_some()
    }

    /// Replaces all users with those of a file. As in Redis, clients of all users except `default`
    /// are disconnected. If the file does not name `default`, it may do everything, with the
    /// password of the settings.
    pub(super) fn load_users(&self, definitions: BTreeMap<Bytes, Definition>) {
        self.replace_users(definitions, self.configured_default(), false);
    }

    /// Replaces all users. If `definitions` does not name `default`, it gets the definition `default`.
    /// With `keeps`, clients of users that stay are not disconnected.
    pub(super) fn replace_users(
        &self,
        definitions: BTreeMap<Bytes, Definition>,
        default: Definition,
        keeps: bool,
    ) {
        let Replaced { deleted, redefined } = self.users.replace(definitions, default, keeps);
        self.disconnect(&deleted);
        for (user, before) in &redefined {
            self.disconnect_subscribers(user, before);
        }
    }

    /// Disconnects the clients of users that were deleted.
    fn disconnect(&self, deleted: &[Arc<User>]) {
        if deleted.is_empty() {
            return;
        }
        for client in self.clients.all() {
            if client.user().is_deleted() {
                client.kill();
            }
        }
    }

    /// Disconnects the clients of a user that are subscribed to channels that the user may no
    /// longer receive (Redis: `ACLKillPubsubClientsIfNeeded`).
    fn disconnect_subscribers(&self, user: &Arc<User>, before: &Definition) {
        let now = user.definition();
        if now.keeps_channels_of(before) {
            return;
        }
        self.pubsub.disconnect(|scope, name, client| {
            Arc::ptr_eq(user, &client.user()) && !now.may_subscribe(name, scope == Scope::Pattern)
        });
    }

    /// Whether a client may run a command. A refusal is logged.
    ///
    /// # Errors
    /// Why it may not.
    pub(super) fn check(
        &self,
        user: &User,
        client: &ClientRecord,
        context: Context,
        row: &Row,
        arguments: &[Bytes],
    ) -> Result<(), Denial> {
        let checked = user.definition().check(row, arguments);
        if let Err(denial) = &checked {
            let object = denial.object(row, arguments);
            self.record(client, denial.reason, context, object, user.name().clone());
        }
        checked
    }

    /// Logs a refusal.
    pub(super) fn record(
        &self,
        client: &ClientRecord,
        reason: Reason,
        context: Context,
        object: Bytes,
        username: Bytes,
    ) {
        let now_ms = self.clock.now_ms();
        let event = Event {
            reason,
            context,
            object,
            username,
            client: clients::describe(client, now_ms),
        };
        self.log
            .record(event, now_ms, self.config.live.acllog_max_len());
    }

    /// Logs that a script has called a command that its client may not run.
    pub(super) fn note_refused_call(&self, client: u64, refused: &RefusedCall) {
        // Its client may be gone.
        let Some(client) = self.clients.find(client) else {
            return;
        };
        let reason = match refused.part {
            RefusedPart::Command => Reason::Command,
            RefusedPart::Key => Reason::Key,
            RefusedPart::Channel => Reason::Channel,
        };
        let (object, user) = (refused.object.clone(), refused.user.clone());
        self.record(&client, reason, Context::Lua, object, user);
    }
}

fn default_user(config: &RuntimeConfig) -> Definition {
    let mut definition = Definition::unrestricted();
    if let Some(password) = config.requirepass() {
        definition.set_only_password(Some(password.as_bytes()));
    }
    definition
}

impl Rights for AccessControl {
    fn of(&self, client: u64) -> Option<Arc<dyn ClientRights>> {
        if !self.users.has_restricted() {
            return None;
        }
        if client == NO_CLIENT {
            return None;
        }
        let Some(client) = self.clients.find(client) else {
            return Some(Arc::new(NoRights));
        };
        let user = client.user();
        (!user.is_open()).then(|| Arc::new(RightsOf(user)) as Arc<dyn ClientRights>)
    }
}

/// The rights of a client that is unknown or gone: none.
struct NoRights;

impl ClientRights for NoRights {
    fn check(&self, command_id: usize, _: &[Bytes]) -> Result<(), RefusedCall> {
        let name = table::all().get(command_id).map_or("", |row| row.name);
        Err(RefusedCall {
            part: RefusedPart::Command,
            object: Bytes::from_static(name.as_bytes()),
            user: Bytes::new(),
            message: "The client is gone".to_owned(),
        })
    }

    fn reads_all_keys(&self, _: usize, _: &[Bytes]) -> bool {
        false
    }
}

/// The rights of a user.
struct RightsOf(Arc<User>);

impl ClientRights for RightsOf {
    fn check(&self, command_id: usize, arguments: &[Bytes]) -> Result<(), RefusedCall> {
        let Some(row) = table::all().get(command_id) else {
            return Ok(());
        };
        let user = &self.0;
        let denied = |denial: Denial| RefusedCall {
            part: match denial.reason {
                Reason::Key => RefusedPart::Key,
                Reason::Channel => RefusedPart::Channel,
                Reason::Command | Reason::Auth => RefusedPart::Command,
            },
            object: denial.object(row, arguments),
            user: user.name().clone(),
            message: denial.message(user.name(), row),
        };
        user.definition().check(row, arguments).map_err(denied)
    }

    fn reads_all_keys(&self, command_id: usize, arguments: &[Bytes]) -> bool {
        let row = table::all().get(command_id);
        row.is_some_and(|row| self.0.definition().reads_all_keys(row, arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::Delivery;
    use quoin_base::clock::ManualClock;
    use quoin_config::LoadedSettings;

    fn control() -> AccessControl {
        let config = Arc::new(RuntimeConfig::new(LoadedSettings::defaults()));
        let clock = Arc::new(ManualClock::at(0));
        let clients = Arc::<ClientRegistry>::default();
        let delivery = Delivery::new(
            Arc::clone(&config),
            Arc::clone(&clock) as Arc<dyn Clock>,
            Arc::clone(clients.memory()),
            Arc::default(),
        );
        let pubsub = Arc::new(PubSub::new(Arc::new(delivery)));
        AccessControl::new(config, clock, clients, pubsub)
    }

    #[test]
    fn a_number_that_no_client_has_may_do_nothing() {
        let control = control();
        control.set_user(b"alice", &[Bytes::from("-@all")]).unwrap();
        assert!(control.of(NO_CLIENT).is_none());
        let rights = control.of(7).unwrap();
        let row = table::find(b"get").unwrap();
        let refused = rights.check(row.id, &[Bytes::from("get"), Bytes::from("key")]);
        let refused = refused.unwrap_err();
        assert_eq!(refused.message, "The client is gone");
        assert_eq!(refused.object, "get");
        assert!(!rights.reads_all_keys(row.id, &[]));
        // Only refusals of known clients are logged.
        control.note_refused_call(7, &refused);
    }
}
