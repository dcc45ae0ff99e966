//! Storage of users: the settings file, the file `aclfile`, or the store of a cluster
//! (docs/understand/decisions/026-users.md).
//!
//! In the store, a change is one transaction that writes the users and a version. A server loads
//! the users again if the version has changed: before the reply to its own change, before AUTH and
//! commands that show users, and when its watch of the version fires.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fs, io};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::access::AccessControl;
use crate::clients::ClientRecord;
use crate::error::ServerError;
use crate::single_flight::Turn;
use crate::state::ServerState;
use quoin_acl::{DEFAULT_USER, Defaults, Definition};
use quoin_base::fatal_panic::Vital;
use quoin_base::threads;
use quoin_data::cluster::users::StoredUsers;
use quoin_data::command::access::KeyLocks;
use quoin_data::error::CommandError;
use quoin_store_embedded::sync_folder;

/// The greatest age of a watch, in case the store has lost it.
const WATCH_RENEWAL: Duration = Duration::from_secs(5);
/// How long AUTH waits for the users of the store. Then the known users apply.
const AUTH_PATIENCE: Duration = Duration::from_secs(1);
/// Pause after the store has failed.
const RETRY: Duration = Duration::from_millis(500);

/// Whether users are in the store.
pub(super) fn are_in_store(state: &ServerState) -> bool {
    state.executor.environment().capabilities.has_other_writers
}

/// Loads the users of the store if they have changed. Waiting callers share the next read.
pub(super) async fn refresh(state: &ServerState) -> Result<(), CommandError> {
    if !are_in_store(state) {
        return Ok(());
    }
    let mut run = match state.access.loaded.turn().await {
        Turn::Shared(result) => return result,
        Turn::Own(run) => run,
    };
    let result = match read_newer(state, run.value()).await {
        Ok(Some(stored)) => {
            run.keep(stored.version);
            apply(&state.access, stored);
            Ok(())
        }
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    run.end(&result);
    result
}

/// The users in the store, if their version differs from this one.
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

/// [`refresh`], except that the server keeps the users that it knows if the store fails.
async fn refresh_if_possible(state: &ServerState) {
    if let Err(error) = refresh(state).await {
        state.warnings.users_unread(&error);
    }
}

/// [`refresh_if_possible`] for a client that authenticates. It waits for a bounded time, and stops if the
/// client is killed or the server stops.
pub(super) async fn refresh_for(client: &ClientRecord, state: &ServerState) {
    if !are_in_store(state) {
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

fn apply(access: &AccessControl, stored: StoredUsers) {
    let definitions = stored.users.into_iter().map(|(name, rules)| {
        let (definition, refused) = Definition::from_description(&rules);
        if let Some(error) = refused {
            // A newer server may have written rules that this one does not know.
            let name = name.escape_ascii();
            tracing::warn!(
                "a rule of user '{name}' in the store is not valid on this server: \
                            {error}"
            );
        }
        (name, definition)
    });
    let definitions: BTreeMap<Bytes, Definition> = definitions.collect();
    access.replace_users(definitions, access.configured_default(), true);
}

/// A change of the stored definition of a user. `None` means no such user, before or after.
type Change = dyn Fn(Option<Definition>) -> Result<Option<Definition>, CommandError> + Send + Sync;

/// ACL SETUSER: applies rules to a user, all or none.
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

/// Applies a change of the setting `requirepass`. If the store has the user `default`, it becomes
/// that user's password in the store, otherwise on this server only.
///
/// # Errors
/// The store's. Then the password is not in effect, and the setting should be undone.
pub(super) async fn take_requirepass(state: &ServerState) -> Result<(), CommandError> {
    if !are_in_store(state) {
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
    // The password is in effect now. A server that cannot read it reads it later.
    refresh_if_possible(state).await;
    Ok(())
}

/// ACL LOAD: replaces all users of the store.
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

/// A thread that loads the users when another server has changed them.
pub(super) struct UserWatch {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl UserWatch {
    /// Loads the users of the store, and watches them. `None` if users are not in the store.
    ///
    /// # Errors
    /// When the store fails, or a thread cannot be started.
    pub(super) async fn start(state: &Arc<ServerState>) -> Result<Option<Self>, ServerError> {
        if !are_in_store(state) {
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
            // Without this thread, users deleted on other servers would remain here.
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

    /// Stops the thread and waits for it.
    pub(super) fn stop(self) {
        drop(self.stop);
        if self.thread.join().is_err() {
            tracing::error!("the thread that watches users panicked");
        }
    }
}

async fn watch(state: &ServerState) {
    let key = state.executor.environment().layout.users_version_key();
    loop {
        // Armed first, so that no change in between is missed.
        let watched = state.store.watch(&key).await;
        refresh_if_possible(state).await;
        match watched {
            Ok(watched) => {
                // A watch that fails is armed again, like one that fires.
                let _ = tokio::time::timeout(WATCH_RENEWAL, watched.changed).await;
            }
            Err(_) => tokio::time::sleep(RETRY).await,
        }
    }
}

/// Loads the users of the settings file, or those of `aclfile`. If users are in the store, only ACL LOAD
/// reads `aclfile`.
pub(super) fn load_at_start(state: &ServerState) -> Result<(), ServerError> {
    if let Some(users) = state.config.file_users() {
        state.access.load_users(users.definitions);
        return Ok(());
    }
    let Some(path) = state.config.aclfile() else {
        return Ok(());
    };
    if are_in_store(state) {
        return Ok(());
    }
    let users = read_file(&path, state.access.defaults()).map_err(ServerError::Users)?;
    state.access.load_users(users);
    Ok(())
}

/// Only the owner may read hashes of passwords.
const FILE_MODE: u32 = 0o600;

/// Reads the users of a file. Waits for the disk.
///
/// # Errors
/// Redis's line with all errors.
pub(super) fn read_file(
    path: &Path,
    defaults: Defaults,
) -> Result<BTreeMap<Bytes, Definition>, String> {
    let shown = path.display().to_string();
    let text = fs::read(path).map_err(|error| {
        let reason = reason(&error);
        format!("Error loading ACLs, opening file '{shown}': {reason}")
    })?;
    quoin_acl::file::parse(&shown, &text, defaults)
}

/// Replaces a file atomically. Waits for the disk.
///
/// # Errors
/// Those of the operating system.
pub(super) fn write_file(path: &Path, text: &[u8]) -> io::Result<()> {
    /// Two writers would share the temporary file.
    static WRITING: Mutex<()> = Mutex::new(());
    let _guard = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".tmp-{}", std::process::id()));
    let written = write_and_rename(Path::new(&temporary), path, text);
    if written.is_err() {
        // Removes only the temporary file.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_and_rename(temporary: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    // An ended process with the same number may have left a file that others can read.
    match fs::remove_file(temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut file = options.mode(FILE_MODE).open(temporary)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(temporary, path)?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    sync_folder(folder.unwrap_or(Path::new(".")))
}

/// The text of C's `strerror`.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) => text.get(..at).unwrap_or_default().to_owned(),
        None => text,
    }
}
