//! The settings of a running server: what CONFIG GET, SET and REWRITE act on, and what the rest
//! of the server asks for at each use. Texts of refusals are those of Redis 7.2 (`config.c`).

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use super::atomic::{AtomicMemoryLimit, AtomicOutputLimit};
use super::load::LoadedSettings;
use super::parameters::{Change, PARAMETERS, ParameterRow};
use super::rewrite;
use super::settings::{LogLevel, MemoryLimit, OutputLimit, OutputLimits, Settings};
use super::table::{SETTINGS, SettingRow};
use crate::events::EventSwitch;
use crate::glob::{self, Case};

/// Settings and remembered parameters of a running server, shared by all of its threads.
///
/// The accessors read single atomic numbers, so that asking at each command costs nothing.
pub struct RuntimeConfig {
    state: RwLock<State>,
    file: Option<PathBuf>,
    /// Held while the settings file is written.
    rewriting: Mutex<()>,
    maxclients: AtomicU32,
    timeout_s: AtomicU32,
    tcp_keepalive_s: AtomicU32,
    slowlog_log_slower_than_us: AtomicI64,
    slowlog_max_len: AtomicU64,
    busy_reply_threshold_ms: AtomicU64,
    latency_monitor_threshold_ms: AtomicU64,
    normal_limit: AtomicOutputLimit,
    subscriber_limit: AtomicOutputLimit,
    query_buffer_limit_bytes: AtomicU64,
    maxmemory_clients: AtomicMemoryLimit,
    keyspace_events: Arc<EventSwitch>,
    hll_sparse_max_bytes: Arc<AtomicU64>,
    tracking_table_max_keys: AtomicU64,
    stream_node_max_entries: Arc<AtomicU64>,
    log_level_listener: OnceLock<LogLevelListener>,
    maxclients_check: OnceLock<MaxclientsCheck>,
    is_protected: AtomicBool,
    delegates_pops: Arc<AtomicBool>,
}

/// What is told of a new log level.
type LogLevelListener = Box<dyn Fn(LogLevel) + Send + Sync>;

/// Whether so many clients can be served; the error says why not.
type MaxclientsCheck = Box<dyn Fn(u32) -> Result<(), String> + Send + Sync>;

#[derive(Clone)]
struct State {
    settings: Settings,
    /// The port that is listened on, where the settings leave it open.
    bound_port: Option<u16>,
    /// Values of the remembered parameters, in the order of the table.
    remembered: Vec<String>,
}

/// What a name of CONFIG stands for.
#[derive(Clone, Copy)]
enum Parameter {
    Setting(&'static SettingRow),
    Remembered(usize, &'static ParameterRow),
}

impl RuntimeConfig {
    /// The settings as they were loaded.
    pub fn new(loaded: LoadedSettings) -> Self {
        let settings = loaded.settings;
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
        let keyspace_events = Arc::new(EventSwitch::default());
        keyspace_events.set(settings.keyspace_events);
        let OutputLimits {
            normal, subscriber, ..
        } = settings.output_limits;
        RuntimeConfig {
            is_protected: AtomicBool::new(settings.protected_mode),
            delegates_pops: Arc::new(AtomicBool::new(settings.delegated_pops)),
            maxclients: AtomicU32::new(settings.maxclients),
            timeout_s: AtomicU32::new(settings.timeout_s),
            tcp_keepalive_s: AtomicU32::new(settings.tcp_keepalive_s),
            slowlog_log_slower_than_us: AtomicI64::new(settings.slowlog_log_slower_than_us),
            slowlog_max_len: AtomicU64::new(settings.slowlog_max_len),
            busy_reply_threshold_ms: AtomicU64::new(settings.busy_reply_threshold_ms),
            latency_monitor_threshold_ms: AtomicU64::new(settings.latency_monitor_threshold_ms),
            normal_limit: AtomicOutputLimit::new(normal),
            subscriber_limit: AtomicOutputLimit::new(subscriber),
            query_buffer_limit_bytes: AtomicU64::new(settings.query_buffer_limit_bytes),
            maxmemory_clients: AtomicMemoryLimit::new(settings.maxmemory_clients),
            keyspace_events,
            hll_sparse_max_bytes: Arc::new(AtomicU64::new(settings.hll_sparse_max_bytes)),
            tracking_table_max_keys: AtomicU64::new(settings.tracking_table_max_keys),
            stream_node_max_entries: Arc::new(AtomicU64::new(settings.stream_node_max_entries)),
            state: RwLock::new(State {
                settings,
                bound_port: None,
                remembered,
            }),
            file: loaded.file.map(absolute),
            rewriting: Mutex::new(()),
            log_level_listener: OnceLock::new(),
            maxclients_check: OnceLock::new(),
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

    /// The password that clients must give, if any.
    pub fn requirepass(&self) -> Option<String> {
        self.read().settings.requirepass.clone()
    }

    /// Whether clients must give a password.
    pub fn has_password(&self) -> bool {
        self.read().settings.requirepass.is_some()
    }

    /// Whether only clients of this machine are answered as long as there is no password.
    pub fn is_protected(&self) -> bool {
        self.is_protected.load(Ordering::Relaxed)
    }

    /// Whether `given` is the password. Without one, every password is. The time it takes does
    /// not tell how much of it is right.
    pub fn is_password(&self, given: &[u8]) -> bool {
        let state = self.read();
        let Some(password) = &state.settings.requirepass else {
            return true;
        };
        let differences = password
            .bytes()
            .zip(given.iter().chain(std::iter::repeat(&0)))
            .fold(0, |differences, (a, b)| differences | (a ^ b));
        differences == 0 && password.len() == given.len()
    }

    /// Clients that may be connected at once.
    pub fn maxclients(&self) -> u32 {
        self.maxclients.load(Ordering::Relaxed)
    }

    /// Lets fewer clients in than the settings ask for: there is no room for more.
    pub fn lower_maxclients(&self, maxclients: u32) {
        self.write(|state| state.settings.maxclients = maxclients);
        self.maxclients.store(maxclients, Ordering::Relaxed);
    }

    /// Names what is asked before CONFIG SET changes `maxclients`. Only the first call counts.
    pub fn on_maxclients(&self, check: impl Fn(u32) -> Result<(), String> + Send + Sync + 'static) {
        // A second check is dropped: there is one process.
        let _ = self.maxclients_check.set(Box::new(check));
    }

    /// Seconds after which an idle client is disconnected; 0 is never.
    pub fn timeout_s(&self) -> u32 {
        self.timeout_s.load(Ordering::Relaxed)
    }

    /// Seconds between TCP keepalive probes on a new connection; 0 is none.
    pub fn tcp_keepalive_s(&self) -> u32 {
        self.tcp_keepalive_s.load(Ordering::Relaxed)
    }

    /// Microseconds beyond which a command enters the slow log; negative is none.
    pub fn slowlog_log_slower_than_us(&self) -> i64 {
        self.slowlog_log_slower_than_us.load(Ordering::Relaxed)
    }

    /// Entries of the slow log.
    pub fn slowlog_max_len(&self) -> u64 {
        self.slowlog_max_len.load(Ordering::Relaxed)
    }

    /// Milliseconds after which a running script has other commands refused; 0 never.
    pub fn busy_reply_threshold_ms(&self) -> u64 {
        self.busy_reply_threshold_ms.load(Ordering::Relaxed)
    }

    /// Milliseconds beyond which an event enters the latency monitor; 0 is none.
    pub fn latency_monitor_threshold_ms(&self) -> u64 {
        self.latency_monitor_threshold_ms.load(Ordering::Relaxed)
    }

    /// How much may wait for a client that is subscribed.
    pub fn subscriber_limit(&self) -> OutputLimit {
        self.subscriber_limit.load()
    }

    /// How much may wait for a client that is not subscribed.
    pub fn normal_limit(&self) -> OutputLimit {
        self.normal_limit.load()
    }

    /// Bytes of unread requests that may wait of one client.
    pub fn query_buffer_limit_bytes(&self) -> u64 {
        self.query_buffer_limit_bytes.load(Ordering::Relaxed)
    }

    /// Memory that the buffers of all clients may take together.
    pub fn maxmemory_clients(&self) -> MemoryLimit {
        self.maxmemory_clients.load()
    }

    /// Changes of keys that are published. CONFIG SET changes what stands in it.
    pub fn keyspace_events(&self) -> &Arc<EventSwitch> {
        &self.keyspace_events
    }

    /// Whether pops from contended queues are delegated. CONFIG SET changes what stands in it.
    pub fn delegates_pops(&self) -> &Arc<AtomicBool> {
        &self.delegates_pops
    }

    /// The most bytes that a HyperLogLog has in the sparse encoding. CONFIG SET changes it.
    pub fn hll_sparse_max_bytes(&self) -> &Arc<AtomicU64> {
        &self.hll_sparse_max_bytes
    }

    /// The most keys that are remembered for clients that cache them; 0 is no limit.
    pub fn tracking_table_max_keys(&self) -> u64 {
        self.tracking_table_max_keys.load(Ordering::Relaxed)
    }

    /// How many entries of a stream are trimmed together. CONFIG SET changes it.
    pub fn stream_node_max_entries(&self) -> &Arc<AtomicU64> {
        &self.stream_node_max_entries
    }

    /// Seconds that a shutdown waits for what is in flight.
    pub fn shutdown_timeout_s(&self) -> u32 {
        self.read().settings.shutdown_timeout_s
    }

    /// Remembers the port that is listened on, for CONFIG GET when the setting is 0.
    pub fn set_bound_port(&self, port: u16) {
        self.write(|state| state.bound_port = Some(port));
    }

    /// Names what is told of each new log level. Only the first call counts.
    pub fn on_log_level(&self, listener: impl Fn(LogLevel) + Send + Sync + 'static) {
        // A second listener is dropped: there is one log.
        let _ = self.log_level_listener.set(Box::new(listener));
    }

    /// CONFIG GET: names and values that match any of the glob patterns, in any case, each once.
    /// A pattern without wildcards is answered in the letters in which it was given.
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

    /// CONFIG SET: all pairs of name and value, or none and the error line.
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

        let mut guard = self.state.write().unwrap_or_else(PoisonError::into_inner);
        // Changed as a whole or not at all.
        let mut state = guard.clone();
        for (name, parameter, value) in changes {
            state
                .set(parameter, value)
                .map_err(|reason| refusal(name, &reason))?;
        }
        let maxclients = state.settings.maxclients;
        if let Some(check) = self.maxclients_check.get()
            && maxclients != guard.settings.maxclients
        {
            check(maxclients).map_err(|reason| refusal("maxclients", &reason))?;
        }
        let old_level = guard.settings.log_level;
        let new_level = state.settings.log_level;
        self.publish(&state.settings);
        *guard = state;
        drop(guard);
        if let Some(listener) = self.log_level_listener.get()
            && new_level != old_level
        {
            listener(new_level);
        }
        Ok(())
    }

    /// CONFIG REWRITE: writes the settings in effect to the settings file. It waits for the disk,
    /// so call it where waiting is allowed. The error is the whole line.
    pub fn rewrite(&self) -> Result<(), String> {
        let Some(path) = &self.file else {
            return Err("ERR The server is running without a config file".to_owned());
        };
        // One at a time, from the settings to the file: two of them would write into one another.
        let _rewriting = self
            .rewriting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        rewrite::rewrite(path, &self.settings())
            .map_err(|error| format!("ERR Rewriting config file: {error}"))
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        // Nothing is left half-done under the lock, so a panic elsewhere does no harm here.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner));
    }

    fn publish(&self, settings: &Settings) {
        let Settings {
            maxclients,
            protected_mode,
            delegated_pops,
            timeout_s,
            tcp_keepalive_s,
            slowlog_log_slower_than_us,
            slowlog_max_len,
            busy_reply_threshold_ms,
            latency_monitor_threshold_ms,
            output_limits,
            query_buffer_limit_bytes,
            maxmemory_clients,
            keyspace_events,
            hll_sparse_max_bytes,
            tracking_table_max_keys,
            stream_node_max_entries,
            ..
        } = *settings;
        self.maxclients.store(maxclients, Ordering::Relaxed);
        self.is_protected.store(protected_mode, Ordering::Relaxed);
        self.delegates_pops.store(delegated_pops, Ordering::Relaxed);
        self.timeout_s.store(timeout_s, Ordering::Relaxed);
        self.tcp_keepalive_s
            .store(tcp_keepalive_s, Ordering::Relaxed);
        self.slowlog_log_slower_than_us
            .store(slowlog_log_slower_than_us, Ordering::Relaxed);
        self.slowlog_max_len
            .store(slowlog_max_len, Ordering::Relaxed);
        self.busy_reply_threshold_ms
            .store(busy_reply_threshold_ms, Ordering::Relaxed);
        self.latency_monitor_threshold_ms
            .store(latency_monitor_threshold_ms, Ordering::Relaxed);
        self.normal_limit.store(output_limits.normal);
        self.subscriber_limit.store(output_limits.subscriber);
        self.query_buffer_limit_bytes
            .store(query_buffer_limit_bytes, Ordering::Relaxed);
        self.maxmemory_clients.store(maxmemory_clients);
        self.keyspace_events.set(keyspace_events);
        self.hll_sparse_max_bytes
            .store(hll_sparse_max_bytes, Ordering::Relaxed);
        self.tracking_table_max_keys
            .store(tracking_table_max_keys, Ordering::Relaxed);
        self.stream_node_max_entries
            .store(stream_node_max_entries, Ordering::Relaxed);
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

/// Every name with what it stands for, older names included.
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

#[cfg(test)]
#[path = "runtime/tests.rs"]
mod tests;
