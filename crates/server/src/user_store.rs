//! Users in the store of a cluster (docs/understand/decisions/026-users.md). A change is one transaction
//! that writes the users and a version. This server takes the users up where the version has changed:
//! before the reply to a change of its own, before AUTH and the commands that show users, and when a
//! watch of the version fires.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::access::AccessControl;
use super::clients::ClientRecord;
use super::error::ServerError;
use super::single_flight::Turn;
use super::state::ServerState;
use quoin_acl::{DEFAULT_USER, Definition};
use quoin_base::fatal_panic::Vital;
use quoin_base::threads;
use quoin_data::cluster::users::StoredUsers;
use quoin_data::command::locks::KeyLocks;
use quoin_data::error::CommandError;

/// The greatest age of a watch, in case the store has lost it.
const WATCH_RENEWAL: Duration = Duration::from_secs(5);
/// How long AUTH waits for the users of the store. Then the users that are known hold.
const AUTH_PATIENCE: Duration = Duration::from_secs(1);
/// Pause after the store has failed.
const RETRY: Duration = Duration::from_millis(500);

/// Whether users are in the store.
pub(super) fn is_used(state: &ServerState) -> bool {
    !state.executor.environment().capabilities.single_writer
}

/// Takes up the users of the store if they have changed. Those that wait share the next read.
pub(super) async fn refresh(state: &ServerState) -> Result<(), CommandError> {
    if !is_used(state) {
        return Ok(());
    }
    let mut run = match state.access.taken_up.turn().await {
        Turn::Shared(result) => return result,
        Turn::Own(run) => run,
    };
    let result = match read_newer(state, run.value()).await {
        Ok(Some(stored)) => {
            run.keep(stored.version);
            take_up(&state.access, stored);
            Ok(())
        }
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    run.end(&result);
    result
}

/// The users of the store, if they are not of this version.
async fn read_newer(
    state: &ServerState,
    version: u64,
) -> Result<Option<StoredUsers>, CommandError> {
    let read = state.executor.read(0, move |context| {
        Box::pin(async move {
            if context.users_version().await? == version {
                return Ok(None);
            }
            Ok(Some(context.stored_users().await?))
        })
    });
    Ok(read.await?)
}

/// As [`refresh`]; where the store fails, what this server knows holds.
pub(super) async fn refresh_if_possible(state: &ServerState) {
    if let Err(error) = refresh(state).await {
        state.warnings.users_unread(&error);
    }
}

/// As [`refresh_if_possible`], for a client that authenticates: it waits a bounded time, and not once it
/// is killed or the server stops.
pub(super) async fn refresh_for(client: &ClientRecord, state: &ServerState) {
    if !is_used(state) {
        return;
    }
    tokio::select! {
        refreshed = tokio::time::timeout(AUTH_PATIENCE, refresh(state)) => match refreshed {
            Ok(Ok(())) => {}
            Ok(Err(error)) => state.warnings.users_unread(&error),
            Err(_) => state.warnings.users_unread(&CommandError::text("the store is slow")),
        },
        () = client.wait_killed() => {}
        () = state.shutdown.begun() => {}
    }
}

fn take_up(access: &AccessControl, stored: StoredUsers) {
    let definitions = stored.users.into_iter().map(|(name, rules)| {
        let (definition, refused) = Definition::from_description(&rules);
        if let Some(error) = refused {
            // A newer server may have rules that this one does not know.
            let name = name.escape_ascii();
            tracing::warn!("a rule of user '{name}' in the store does not hold here: {error}");
        }
        (name, definition)
    });
    let definitions: BTreeMap<Bytes, Definition> = definitions.collect();
    access.replace_users(definitions, access.configured_default(), true);
}

/// What a change makes of the stored definition of a user; `None` where there is none.
type Change = dyn Fn(Option<Definition>) -> Result<Option<Definition>, CommandError> + Send + Sync;

/// ACL SETUSER: changes a user by rules, all or none.
///
/// # Errors
/// Redis's for the rules, or the store's.
pub(super) async fn set_user(
    state: &ServerState,
    name: &[u8],
    rules: &[Bytes],
) -> Result<(), CommandError> {
    let defaults = state.access.defaults();
    let new = match name == DEFAULT_USER.as_bytes() {
        true => state.access.configured_default(),
        false => Definition::new(defaults),
    };
    let rules = rules.to_vec();
    let change = move |before: Option<Definition>| {
        let before = before.unwrap_or_else(|| new.clone());
        let changed = before.with_rules(&rules, defaults);
        let changed = changed.map_err(|text| CommandError::Text(format!("ERR {text}").into()))?;
        Ok(Some(changed))
    };
    let names = vec![Bytes::copy_from_slice(name)];
    change_users(state, names, Arc::new(change)).await?;
    refresh(state).await
}

/// ACL DELUSER: deletes users. Returns how many there were.
///
/// # Errors
/// The store's.
pub(super) async fn delete_users(
    state: &ServerState,
    names: &[Bytes],
) -> Result<usize, CommandError> {
    let deleted = change_users(state, names.to_vec(), Arc::new(|_| Ok(None))).await?;
    refresh(state).await?;
    Ok(deleted)
}

/// The setting `requirepass` has changed on this server: it is the password of the user `default`, for
/// all servers where the store has that user, else for this one.
///
/// # Errors
/// The store's. Then the password does not hold, and the setting should be undone.
pub(super) async fn take_requirepass(state: &ServerState) -> Result<(), CommandError> {
    if !is_used(state) {
        state.access.take_requirepass();
        return Ok(());
    }
    let password = state.config.requirepass();
    let change = move |before: Option<Definition>| {
        Ok(before.map(|mut default| {
            default.set_only_password(password.as_deref().map(str::as_bytes));
            default
        }))
    };
    let names = vec![Bytes::from_static(DEFAULT_USER.as_bytes())];
    let stored = change_users(state, names, Arc::new(change)).await?;
    if stored == 0 {
        state.access.take_requirepass();
    }
    // The password holds from here on. A server that cannot read it now does so later.
    refresh_if_possible(state).await;
    Ok(())
}

/// ACL LOAD: the store has exactly these users from now on.
///
/// # Errors
/// The store's.
pub(super) async fn replace_users(
    state: &ServerState,
    users: BTreeMap<Bytes, Definition>,
) -> Result<(), CommandError> {
    let users: Arc<[(Bytes, Vec<u8>)]> = users
        .into_iter()
        .map(|(name, user)| (name, user.describe()))
        .collect();
    let executor = &state.executor;
    executor
        .transact(0, KeyLocks::Nothing, move |context| {
            let users = Arc::clone(&users);
            Box::pin(async move {
                context.remove_users();
                for (name, rules) in users.iter() {
                    context.store_user(name, rules)?;
                }
                Ok(())
            })
        })
        .await?;
    refresh(state).await
}

/// Changes stored users in one transaction. Returns how many were stored before.
async fn change_users(
    state: &ServerState,
    names: Vec<Bytes>,
    change: Arc<Change>,
) -> Result<usize, CommandError> {
    let names: Arc<[Bytes]> = names.into();
    let executor = &state.executor;
    let changed = executor.transact(0, KeyLocks::Nothing, move |context| {
        let (names, change) = (Arc::clone(&names), Arc::clone(&change));
        Box::pin(async move {
            let mut known = 0;
            for name in names.iter() {
                let before = context.stored_user(name).await?;
                let before = before.map(|rules| Definition::from_description(&rules).0);
                let was_known = before.is_some();
                known += usize::from(was_known);
                match change(before)? {
                    Some(changed) => context.store_user(name, &changed.describe())?,
                    None if was_known => context.remove_user(name),
                    None => {}
                }
            }
            Ok(known)
        })
    });
    Ok(changed.await?)
}

/// A thread that takes up the users when another server has changed them.
pub(super) struct UserWatch {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl UserWatch {
    /// Takes up the users of the store, and watches them; `None` where users are not in the store.
    ///
    /// # Errors
    /// When the store fails, or a thread cannot be started.
    pub(super) async fn start(state: &Arc<ServerState>) -> Result<Option<Self>, ServerError> {
        if !is_used(state) {
            return Ok(None);
        }
        let refreshed = refresh(state).await;
        refreshed.map_err(|error| ServerError::Users(error.to_string()))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let state = Arc::clone(state);
        let thread = threads::spawn("quoin-users", move || {
            // Users that were deleted elsewhere would stay here without it.
            let _vital = Vital::enter("the thread that watches users");
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = watch(&state) => {}
                }
            });
        })?;
        Ok(Some(Self { stop, thread }))
    }

    /// Ends it. Waits for the thread.
    pub(super) fn stop(self) {
        drop(self.stop);
        if self.thread.join().is_err() {
            tracing::error!("the thread that watches users had panicked");
        }
    }
}

async fn watch(state: &ServerState) {
    let key = state.executor.environment().layout.users_version_key();
    loop {
        // Armed first, so that no change is missed between both.
        let watched = state.store.watch(&key).await;
        refresh_if_possible(state).await;
        match watched {
            Ok(watched) => {
                // A watch that fails is armed again as one that fires.
                let _ = tokio::time::timeout(WATCH_RENEWAL, watched.changed).await;
            }
            Err(_) => tokio::time::sleep(RETRY).await,
        }
    }
}
