//! The settings of a running server, for CONFIG GET, SET and REWRITE and for the rest of the server.
//! Texts of refusals are those of Redis 7.2 (`config.c`).

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use crate::error::ConfigError;
use crate::load::LoadedSettings;
use crate::parameters::{Change, PARAMETERS, ParameterRow};
use crate::settings::{ChannelsDefault, LogLevel};
use crate::table::{LiveSettings, SETTINGS, SettingRow, Settings};
use crate::users::FileUsers;
use crate::{rewrite, users};
use quoin_base::glob;
use quoin_base::glob::Case;

/// How the names of settings of TLS begin.
const TLS_PREFIX: &str = "tls-";

/// Settings and remembered parameters of a running server, shared by all of its threads.
pub struct RuntimeConfig {
    /// The settings that are read at each command.
    pub live: LiveSettings,
    state: RwLock<State>,
    file: Option<PathBuf>,
    /// The settings as last read or written.
    loaded: Mutex<LoadedSettings>,
    /// Held while the settings file is written.
    rewriting: Mutex<()>,
    log_level_listener: OnceLock<LogLevelListener>,
    maxclients_check: OnceLock<MaxclientsCheck>,
    tls_listener: OnceLock<TlsListener>,
    /// Held while TLS settings change. It is not the lock of the state, because files are read under it.
    tls_change: Mutex<()>,
}

/// Called with a new log level.
type LogLevelListener = Box<dyn Fn(LogLevel) + Send + Sync>;

/// Checks whether this number of clients can be served. The error is the reason.
type MaxclientsCheck = Box<dyn Fn(u32) -> Result<(), String> + Send + Sync>;

/// The result of a reload, as names of settings.
#[derive(Debug, Default)]
pub struct Reloaded {
    /// What has changed.
    pub changed: Vec<&'static str>,
    /// Refused changes, as lines for the log.
    pub refused: Vec<String>,
    /// Changed in the file, but only a restart applies it.
    pub needs_restart: Vec<&'static str>,
}

/// Reads the files of changed TLS settings. The error is the reason why they cannot be used.
type TlsListener = Box<dyn Fn(&Settings) -> Result<TlsChange, String> + Send + Sync>;

/// Applies the files that were read.
pub type TlsChange = Box<dyn FnOnce() + Send>;

#[derive(Clone)]
struct State {
    settings: Settings,
    /// The port of the listener, if the setting is 0.
    bound_port: Option<u16>,
    /// Values of the remembered parameters, in the order of the table.
    remembered: Vec<String>,
}

/// The meaning of a name in CONFIG.
#[derive(Clone, Copy)]
enum Parameter {
    Setting(&'static SettingRow),
    Remembered(usize, &'static ParameterRow),
}

impl RuntimeConfig {
    /// The settings as they were loaded.
    pub fn new(loaded: LoadedSettings) -> Self {
        let settings = loaded.settings.clone();
        // A relative path would change its meaning with the working directory.
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let data_dir = absolute(settings.data_dir.clone()).display().to_string();
        let remembered = PARAMETERS
            .iter()
            .map(|row| match row.name {
                "dir" => data_dir.clone(),
                "appendfsync" => settings.fsync.name().to_owned(),
                _ => row.default.to_owned(),
            })
            .collect();
        let live = LiveSettings::default();
        live.publish(&settings);
        RuntimeConfig {
            live,
            state: RwLock::new(State {
                settings,
                bound_port: None,
                remembered,
            }),
            file: loaded.file.clone().map(absolute),
            loaded: Mutex::new(loaded),
            rewriting: Mutex::new(()),
            log_level_listener: OnceLock::new(),
            maxclients_check: OnceLock::new(),
            tls_listener: OnceLock::new(),
            tls_change: Mutex::default(),
        }
    }

    /// A copy of the settings in effect.
    pub fn settings(&self) -> Settings {
        self.read().settings.clone()
    }

    /// The settings file, as an absolute path.
    pub fn file(&self) -> Option<&std::path::Path> {
        self.file.as_deref()
    }

    /// The password of the user `default`, unless rules have changed it.
    pub fn requirepass(&self) -> Option<String> {
        self.read().settings.requirepass.clone()
    }

    /// The file of users, as it was given.
    pub fn aclfile(&self) -> Option<PathBuf> {
        self.read().settings.aclfile.clone()
    }

    /// Whether new users may use all channels.
    pub fn acl_pubsub_all_channels(&self) -> bool {
        self.read().settings.acl_pubsub_default == ChannelsDefault::AllChannels
    }

    /// The users that the settings file names, if it does.
    pub fn file_users(&self) -> Option<FileUsers> {
        self.loaded().users.clone()
    }

    /// Lowers `maxclients`, because there is no room for more clients.
    pub fn lower_maxclients(&self, maxclients: u32) {
        self.write(|state| {
            state.settings.maxclients = maxclients;
            self.live.publish(&state.settings);
        });
    }

    /// Sets the check of a new `maxclients` by CONFIG SET. Only the first call counts.
    pub fn on_maxclients(&self, check: impl Fn(u32) -> Result<(), String> + Send + Sync + 'static) {
        // A second check is dropped: there is one process.
        let _ = self.maxclients_check.set(Box::new(check));
    }

    /// Remembers the port that is listened on, for CONFIG GET when the setting is 0.
    pub fn set_bound_port(&self, port: u16) {
        self.write(|state| state.bound_port = Some(port));
    }

    /// Sets the listener for new log levels. Only the first call counts.
    pub fn on_log_level(&self, listener: impl Fn(LogLevel) + Send + Sync + 'static) {
        // A second listener is dropped: there is one log.
        let _ = self.log_level_listener.set(Box::new(listener));
    }

    /// Sets the listener that reads the files of TLS settings when CONFIG SET changes one of these.
    /// The closure that it returns applies them. Only the first call counts.
    pub fn on_tls(
        &self,
        listener: impl Fn(&Settings) -> Result<TlsChange, String> + Send + Sync + 'static,
    ) {
        // A second listener is dropped: there is one process.
        let _ = self.tls_listener.set(Box::new(listener));
    }

    /// CONFIG GET: names and values that match any of the glob patterns, case-insensitively, each once. A
    /// pattern without wildcards is repeated as it was given.
    pub fn get(&self, patterns: &[&[u8]]) -> Vec<(String, String)> {
        let state = self.read();
        let mut found: Vec<(String, String)> = Vec::new();
        for &pattern in patterns {
            if pattern.iter().any(|byte| b"[*?".contains(byte)) {
                for (name, parameter) in all_parameters() {
                    let is_match = !parameter.is_hidden()
                        && glob::matches(pattern, name.as_bytes(), Case::Insensitive);
                    if is_match && !is_among(&found, name) {
                        found.push((name.to_owned(), state.value(parameter)));
                    }
                }
            } else if let Some((_, parameter)) = lookup(pattern) {
                let name = String::from_utf8_lossy(pattern);
                if !is_among(&found, &name) {
                    found.push((name.into_owned(), state.value(parameter)));
                }
            }
        }
        found
    }

    /// Whether [`Self::set`] waits for the disk when it is given this name.
    pub fn reads_files(name: &[u8]) -> bool {
        let prefix = name.get(..TLS_PREFIX.len());
        prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(TLS_PREFIX.as_bytes()))
    }

    /// CONFIG SET: sets all pairs of name and value, or none and returns the error line. If
    /// [`Self::reads_files`] is true of a name, call it on a thread that may wait.
    pub fn set(&self, pairs: &[(&[u8], &[u8])]) -> Result<(), String> {
        let mut changes = Vec::new();
        for &(given_name, value) in pairs {
            let shown = String::from_utf8_lossy(given_name);
            let Some((name, parameter)) = lookup(given_name) else {
                return Err(format!(
                    "ERR Unknown option or number of arguments for CONFIG SET - '{shown}'"
                ));
            };
            parameter
                .check_changeable()
                .map_err(|reason| refusal(&shown, reason))?;
            if changes.iter().any(|&(other, _, _)| other == name) {
                return Err(refusal(&shown, "duplicate parameter"));
            }
            changes.push((name, parameter, value));
        }

        let change = |state: &mut State| -> Result<(), String> {
            for &(name, parameter, value) in &changes {
                let set = state.set(parameter, value);
                set.map_err(|reason| refusal(name, &reason))?;
            }
            Ok(())
        };
        let of_tls = changes
            .iter()
            .map(|&(name, _, _)| name)
            .find(|name| name.starts_with(TLS_PREFIX));
        // Files are read before the state is locked, because a file system may hang. An unchanged value
        // counts too, because its file may have changed.
        let mut tls_change = None;
        let _changing_tls = of_tls.map(|_| self.lock_tls());
        if let (Some(name), Some(listener)) = (of_tls, self.tls_listener.get()) {
            let mut state = self.read().clone();
            change(&mut state)?;
            let read = listener(&state.settings);
            tls_change = Some(read.map_err(|reason| refusal(name, &reason))?);
        }

        let mut guard = self.state.write().unwrap_or_else(PoisonError::into_inner);
        // All changes or none.
        let mut state = guard.clone();
        change(&mut state)?;
        let maxclients = state.settings.maxclients;
        if let Some(check) = self.maxclients_check.get()
            && maxclients != guard.settings.maxclients
        {
            check(maxclients).map_err(|reason| refusal("maxclients", &reason))?;
        }
        if let Some(reason) = state.settings.refusal_of_maxmemory() {
            return Err(refusal("maxmemory", reason));
        }
        // Nothing can fail from here on.
        if let Some(take_into_use) = tls_change {
            take_into_use();
        }
        let old_level = guard.settings.log_level;
        let new_level = state.settings.log_level;
        self.live.publish(&state.settings);
        *guard = state;
        drop(guard);
        if let Some(listener) = self.log_level_listener.get()
            && new_level != old_level
        {
            listener(new_level);
        }
        Ok(())
    }

    /// CONFIG REWRITE: writes the settings in effect to the settings file, and the users if given, each
    /// as its name and its rules. It waits for the disk. The error is the whole line.
    pub fn rewrite(&self, users: Option<&[String]>) -> Result<(), String> {
        let Some(path) = &self.file else {
            return Err("ERR The server is running without a config file".to_owned());
        };
        // Covers everything from the settings to the file. Otherwise concurrent rewrites could mix.
        let _rewriting = self
            .rewriting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let settings = self.settings();
        rewrite::rewrite(path, &settings, users)
            .map_err(|error| format!("ERR Rewriting config file: {error}"))?;
        let mut loaded = self.loaded();
        loaded.settings = settings;
        if users.is_some()
            && let Ok(now) = loaded.reload()
        {
            loaded.users = now.users;
        }
        Ok(())
    }

    /// Reads the settings file again and applies what has changed in it since it was last read or
    /// written. So changes by CONFIG SET last as long as the file does not change. Variables and
    /// flags override the file as at the start. Always reads the TLS certificates again. Waits for
    /// the disk.
    ///
    /// # Errors
    /// If the file cannot be read or has an invalid value. Then nothing changes.
    pub fn reload(&self) -> Result<Reloaded, ConfigError> {
        let mut known = self.loaded();
        let mut now = known.reload()?;
        let mut reloaded = Reloaded::default();
        let mut of_tls = Vec::new();
        let mut groups = Vec::new();
        for row in SETTINGS {
            let value = (row.render)(&now.settings);
            if value == (row.render)(&known.settings) {
                continue;
            }
            match (row.is_runtime_changeable, row.name.starts_with(TLS_PREFIX)) {
                (false, _) => reloaded.needs_restart.push(row.name),
                // A certificate and its key change together.
                (true, true) => of_tls.push((row, value)),
                (true, false) => groups.push(vec![(row, value)]),
            }
        }
        let definitions = |loaded: &LoadedSettings| loaded.users.clone().map(|one| one.definitions);
        if definitions(&now) != definitions(&known) {
            reloaded.needs_restart.push(users::NAME);
        }
        let has_tls = !of_tls.is_empty();
        groups.extend(has_tls.then_some(of_tls));
        for group in groups {
            let pairs: Vec<(&[u8], &[u8])> = group
                .iter()
                .map(|(row, value)| (row.name.as_bytes(), value.as_bytes()))
                .collect();
            let set = self.set(&pairs);
            for (row, _) in &group {
                if set.is_ok() {
                    reloaded.changed.push(row.name);
                } else {
                    // So that the next reload tries again.
                    let before = (row.render)(&known.settings);
                    let _ = (row.apply)(&mut now.settings, &before);
                }
            }
            reloaded.refused.extend(set.err());
        }
        if let (Some(listener), false) = (self.tls_listener.get(), has_tls) {
            let _changing_tls = self.lock_tls();
            match listener(&self.settings()) {
                Ok(take_into_use) => take_into_use(),
                Err(reason) => reloaded.refused.push(reason),
            }
        }
        *known = now;
        Ok(reloaded)
    }

    /// Undoes a change of `requirepass` to `given` that could not be applied, unless it was changed again
    /// since.
    pub fn undo_requirepass(&self, given: Option<&str>, before: Option<String>) {
        self.write(|state| {
            if state.settings.requirepass.as_deref() == given {
                state.settings.requirepass = before;
            }
        });
    }

    /// [`Self::undo_requirepass`] for a change by [`Self::reload`]. The next reload tries again.
    pub fn undo_reloaded_requirepass(&self, given: Option<&str>, before: Option<String>) {
        self.loaded().settings.requirepass.clone_from(&before);
        self.undo_requirepass(given, before);
    }

    fn lock_tls(&self) -> MutexGuard<'_, ()> {
        self.tls_change
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn loaded(&self) -> MutexGuard<'_, LoadedSettings> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        // Changes under the lock are complete, so a poisoned lock does no harm.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl State {
    fn value(&self, parameter: Parameter) -> String {
        match parameter {
            Parameter::Setting(row) => match self.bound_port {
                Some(port) if row.name == "port" => port.to_string(),
                _ => (row.render)(&self.settings),
            },
            Parameter::Remembered(at, _) => self.remembered.get(at).cloned().unwrap_or_default(),
        }
    }

    fn set(&mut self, parameter: Parameter, value: &[u8]) -> Result<(), String> {
        let given =
            std::str::from_utf8(value).map_err(|_| "argument must be UTF-8 text".to_owned())?;
        match parameter {
            Parameter::Setting(row) => row.set(&mut self.settings, given),
            Parameter::Remembered(at, row) => {
                let Some(present) = self.remembered.get_mut(at) else {
                    return Ok(());
                };
                let value = row.kind.normalise(given, present)?;
                match row.change {
                    Change::Fixed(reason) if value != *present => Err(reason.to_owned()),
                    _ => {
                        *present = value;
                        Ok(())
                    }
                }
            }
        }
    }
}

impl Parameter {
    fn is_hidden(self) -> bool {
        match self {
            Parameter::Setting(_) => false,
            Parameter::Remembered(_, row) => row.is_hidden,
        }
    }

    fn check_changeable(self) -> Result<(), &'static str> {
        match self {
            Parameter::Setting(row) if row.is_runtime_changeable => Ok(()),
            Parameter::Setting(_) => Err("can't set immutable config"),
            Parameter::Remembered(_, row) => match row.change {
                Change::Free | Change::Fixed(_) => Ok(()),
                Change::Immutable => Err("can't set immutable config"),
                Change::Protected => Err("can't set protected config"),
            },
        }
    }
}

/// Every name with its meaning, older names included.
fn all_parameters() -> impl Iterator<Item = (&'static str, Parameter)> {
    let settings = SETTINGS
        .iter()
        .map(|row| (row.name, Parameter::Setting(row)));
    let remembered = PARAMETERS.iter().enumerate().flat_map(|(at, row)| {
        [row.name, row.alias]
            .into_iter()
            .filter(|name| !name.is_empty())
            .map(move |name| (name, Parameter::Remembered(at, row)))
    });
    settings.chain(remembered)
}

fn lookup(name: &[u8]) -> Option<(&'static str, Parameter)> {
    all_parameters().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name))
}

fn is_among(found: &[(String, String)], name: &str) -> bool {
    found
        .iter()
        .any(|(known, _)| known.eq_ignore_ascii_case(name))
}

fn refusal(name: &str, reason: &str) -> String {
    format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}")
}
