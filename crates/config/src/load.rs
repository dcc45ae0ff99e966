//! Settings from their sources: defaults, the file, `QUOIN_*` variables, and flags. A later source
//! overrides an earlier one.

use std::ffi::OsString;
use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{ConfigError, Origin, suggest};
use crate::settings::{LogLevel, StoreKind};
use crate::table::{SETTINGS, SettingRow, Settings};
use crate::users::{FileUsers, UsersEntry};
use crate::{hints, redis_conf, users};
use quoin_base::limits::SETTINGS_FILE_BYTES_MAX;
use quoin_base::size::counted;

/// The variable that names the settings file.
pub const FILE_VARIABLE: &str = "QUOIN_CONFIG";
/// Variables with these beginnings belong to the tests, the benchmarks and the tools, not to the server.
const FOREIGN_PREFIXES: [&str; 5] = [
    "QUOIN_TEST_",
    "QUOIN_BENCH_",
    "QUOIN_CLIENT_",
    "QUOIN_EXPORT_",
    "QUOIN_IMPORT_",
];

/// Settings, and the source of each.
#[derive(Debug, Clone)]
pub struct LoadedSettings {
    /// The settings in effect.
    pub settings: Settings,
    /// The file that was read. CONFIG REWRITE writes it.
    pub file: Option<PathBuf>,
    /// The users that the file names, if it does.
    pub users: Option<FileUsers>,
    /// Variables that Kubernetes sets for a service whose name begins with `quoin`. They are not
    /// settings.
    pub of_services: Vec<String>,
    origins: Vec<(&'static str, Origin)>,
    sources: Sources,
}

/// Variables and flags, which do not change while the program runs. `Debug` hides them, because they may
/// hold passwords.
#[derive(Clone, Default)]
struct Sources {
    variables: Vec<(OsString, OsString)>,
    flags: Vec<(&'static SettingRow, String)>,
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sources")
    }
}

impl LoadedSettings {
    /// The defaults alone.
    pub fn defaults() -> Self {
        LoadedSettings {
            settings: Settings::default(),
            file: None,
            users: None,
            of_services: Vec::new(),
            origins: Vec::new(),
            sources: Sources::default(),
        }
    }

    /// Reads the file again and returns the current settings.
    pub(super) fn reload(&self) -> Result<Self, ConfigError> {
        let Sources { variables, flags } = self.sources.clone();
        load(self.file.clone(), variables, flags)
    }

    /// The source of the setting of this name.
    pub fn origin(&self, name: &str) -> Origin {
        self.origins
            .iter()
            .rev()
            .find(|(known, _)| *known == name)
            .map_or(Origin::Default, |(_, origin)| origin.clone())
    }

    /// Every setting with its source, as a settings file. Passwords are left out.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for row in SETTINGS {
            let value = (row.render)(&self.settings);
            let origin = self.origin(row.name);
            let line = if row.is_secret() && !value.is_empty() {
                format!("# {} is set, but not shown", row.name)
            } else {
                format!("{} = {}", row.name, row.kind.to_toml(&value))
            };
            text.push_str(&format!("{line:<44} # {origin}\n"));
        }
        if let Some(users) = &self.users {
            let count = u64::try_from(users.definitions.len()).unwrap_or(u64::MAX);
            let (users, origin) = (counted(count, "user", "users"), &users.origin);
            let line = format!("# user: {users}, not shown");
            text.push_str(&format!("{line:<44} # {origin}\n"));
        }
        for name in &self.of_services {
            text.push_str(&format!("# {name} belongs to a service, and is ignored\n"));
        }
        text
    }

    fn set(
        &mut self,
        row: &'static SettingRow,
        given: &str,
        origin: Origin,
    ) -> Result<(), ConfigError> {
        let value = match row.name {
            "loglevel" => LogLevel::name_at_start(given),
            _ => given,
        };
        // The reason is in Redis's words, for CONFIG SET. `accepted` says the same.
        row.set(&mut self.settings, value)
            .map_err(|_| ConfigError::Value {
                setting: row.name,
                origin: origin.clone(),
                given: shown(row, given),
                reason: String::new(),
                accepted: row.kind.accepted(),
            })?;
        self.origins.push((row.name, origin));
        Ok(())
    }

    /// An empty variable counts as not set, because compose files produce it from an unset
    /// `${VARIABLE}`.
    fn set_from_variable(&mut self, name: String, value: OsString) -> Result<(), ConfigError> {
        let Some(row) = SETTINGS.iter().find(|row| row.environment() == name) else {
            return Err(unknown_variable(name));
        };
        if value.is_empty() {
            return Ok(());
        }
        let origin = Origin::Variable(name);
        // No setting accepts a value that is not UTF-8.
        let value = value.into_string().map_err(|value| ConfigError::Value {
            setting: row.name,
            origin: origin.clone(),
            given: shown(row, &value.to_string_lossy()),
            reason: ": not UTF-8".to_owned(),
            accepted: row.kind.accepted(),
        })?;
        self.set(row, &value, origin)
    }
}

/// Whether Kubernetes sets a variable of this name for a service `quoin` or `quoin-…`, or Docker
/// for a link: `QUOIN_SERVICE_HOST`, `QUOIN_PORT_6379_TCP_ADDR`, and `QUOIN_PORT` with an address.
fn is_of_service(name: &str, value: &OsString) -> bool {
    let is_row = SETTINGS.iter().any(|row| row.environment() == name);
    let is_address = value.to_str().is_some_and(|value| {
        let schemes = ["tcp://", "udp://", "sctp://"];
        schemes.iter().any(|scheme| value.starts_with(scheme))
    });
    if name.ends_with("_PORT") && is_address {
        return true;
    }
    if is_row {
        return false;
    }
    let has = |part: &str| name.contains(part) || name.ends_with(part.trim_end_matches('_'));
    if has("_SERVICE_HOST_") || has("_SERVICE_PORT_") {
        return true;
    }
    name.split_once("_PORT_").is_some_and(|(_, rest)| {
        let (port, protocol) = rest.split_once('_').unwrap_or_default();
        let protocol = protocol.split('_').next().unwrap_or_default();
        port.parse::<u16>().is_ok() && ["TCP", "UDP", "SCTP"].contains(&protocol)
    })
}

/// A value as an error shows it.
fn shown(row: &SettingRow, given: &str) -> String {
    match row.is_secret() {
        true => String::new(),
        false => format!(" '{given}'"),
    }
}

fn unknown_variable(name: String) -> ConfigError {
    let known: Vec<String> = SETTINGS.iter().map(SettingRow::environment).collect();
    let known = known.iter().map(String::as_str).chain([FILE_VARIABLE]);
    let in_redis = name.trim_start_matches("QUOIN_").replace('_', "-");
    ConfigError::Unknown {
        given: String::new(),
        hint: hints::of_redis(&in_redis).unwrap_or_else(|| suggest(&name, known)),
        origin: Origin::Variable(name),
    }
}

/// Loads the settings. `file` is the path that a flag gave; `variables` is the environment; `flags` are
/// settings with the values that flags gave. The error lists everything that is wrong.
pub fn load(
    file: Option<PathBuf>,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    flags: impl IntoIterator<Item = (&'static SettingRow, String)>,
) -> Result<LoadedSettings, ConfigError> {
    let sources = Sources {
        variables: variables.into_iter().collect(),
        flags: flags.into_iter().collect(),
    };
    let mut variables: Vec<(String, OsString)> = sources
        .variables
        .iter()
        .cloned()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| name.starts_with("QUOIN_"))
        .filter(|(name, _)| {
            !FOREIGN_PREFIXES
                .iter()
                .any(|prefix| name.starts_with(prefix))
        })
        .collect();
    // So that errors always come in the same order.
    variables.sort();

    let mut errors = Vec::new();
    let mut loaded = LoadedSettings::defaults();
    let mut users = None;
    loaded.file = file.or_else(|| {
        variables
            .iter()
            .find(|(name, value)| name == FILE_VARIABLE && !value.is_empty())
            .map(|(_, value)| PathBuf::from(value))
    });
    if let Some(path) = loaded.file.clone() {
        match read_file(&path) {
            Ok(text) => {
                for entry in read_entries(&path, &text) {
                    let set = entry.and_then(|entry| match entry {
                        Entry::Setting(entry) => loaded.set(entry.row, &entry.given, entry.origin),
                        Entry::Users(entry) => {
                            users = Some(entry);
                            Ok(())
                        }
                    });
                    errors.extend(set.err());
                }
            }
            Err(error) => errors.push(error),
        }
    }
    for (name, value) in variables {
        if is_of_service(&name, &value) {
            loaded.of_services.push(name);
        } else if name != FILE_VARIABLE {
            errors.extend(loaded.set_from_variable(name, value).err());
        }
    }
    for (row, value) in &sources.flags {
        let origin = Origin::Flag(format!("--{}", row.name));
        errors.extend(loaded.set(row, value, origin).err());
    }
    loaded.sources = sources;
    if loaded.settings.store == StoreKind::Fdb && !cfg!(feature = "fdb") {
        errors.push(ConfigError::StoreNotBuilt(loaded.origin("store")));
    }
    if let Some(reason) = loaded.settings.refusal_of_maxmemory() {
        errors.push(ConfigError::Value {
            setting: "maxmemory",
            origin: loaded.origin("maxmemory"),
            given: String::new(),
            reason: format!(": {reason}"),
            accepted: "0".to_owned(),
        });
    }
    let settings = &loaded.settings;
    if !settings.journal_archive_command.is_empty() && settings.journal_archive_dir.is_none() {
        errors.push(ConfigError::Value {
            setting: "journal-archive-command",
            origin: loaded.origin("journal-archive-command"),
            given: String::new(),
            reason:
                ": needs journal-archive-dir, which keeps each file until the command has taken it"
                    .to_owned(),
            accepted: "empty, unless journal-archive-dir is set".to_owned(),
        });
    }
    if let Some(users) = users {
        match users.users(&loaded.settings) {
            Ok(users) => loaded.users = Some(users),
            Err(error) => errors.push(error),
        }
    }
    ConfigError::all(errors)?;
    Ok(loaded)
}

/// Reads a settings file of bounded size.
pub(super) fn read_file(path: &Path) -> Result<String, ConfigError> {
    let fail = |source| ConfigError::File {
        path: path.to_owned(),
        source,
    };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(fail)?;
    file.take(SETTINGS_FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(fail)?;
    if text.len() as u64 > SETTINGS_FILE_BYTES_MAX {
        return Err(ConfigError::FileTooLarge {
            path: path.to_owned(),
            max: SETTINGS_FILE_BYTES_MAX,
        });
    }
    Ok(text)
}

/// An entry of a file.
#[derive(Debug)]
pub(super) enum Entry {
    /// A setting.
    Setting(FileEntry),
    /// The users.
    Users(UsersEntry),
}

/// One setting of a file.
#[derive(Debug)]
pub(super) struct FileEntry {
    /// Which setting.
    pub(super) row: &'static SettingRow,
    /// Its value, written as in a variable.
    pub(super) given: String,
    /// Its line.
    pub(super) origin: Origin,
    /// The place of the value in the text, in bytes.
    pub(super) value_span: Range<usize>,
}

/// The entries of a file, in the order of the text.
pub(super) fn file_entries(path: &Path, text: &str) -> Result<Vec<Entry>, ConfigError> {
    read_entries(path, text).into_iter().collect()
}

/// The entries of a file, with errors in their places.
fn read_entries(path: &Path, text: &str) -> Vec<Result<Entry, ConfigError>> {
    let origin = |at: usize| {
        let before = text.as_bytes().get(..at).unwrap_or_default();
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        Origin::File(path.to_owned(), line)
    };
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(error) => {
            return vec![Err(match redis_conf::read(text) {
                Some(conf) => ConfigError::RedisConf {
                    origin: Origin::File(path.to_owned(), conf.line),
                    toml: conf.toml,
                },
                None => ConfigError::Toml {
                    origin: origin(error.span().map_or(0, |span| span.start)),
                    message: error.message().to_owned(),
                },
            })];
        }
    };
    let mut settings: Vec<_> = table.get_ref().iter().collect();
    settings.sort_by_key(|(key, _)| key.span().start);
    settings
        .into_iter()
        .map(|(key, value)| read_entry(key.get_ref(), value, origin(key.span().start)))
        .collect()
}

fn read_entry(
    name: &str,
    value: &Spanned<DeValue<'_>>,
    origin: Origin,
) -> Result<Entry, ConfigError> {
    if name == users::NAME {
        return UsersEntry::read(value, origin).map(Entry::Users);
    }
    let Some(row) = SETTINGS.iter().find(|row| row.name == name) else {
        // `data_dir` is near `data-dir`. `[server]` is near nothing.
        let nearest = || suggest(name, SETTINGS.iter().map(|row| row.name));
        return Err(ConfigError::Unknown {
            given: format!(": '{name}'"),
            hint: hints::of_redis(name).unwrap_or_else(nearest),
            origin,
        });
    };
    match plain_text(value.get_ref()) {
        Some(given) => Ok(Entry::Setting(FileEntry {
            row,
            given,
            origin,
            value_span: value.span(),
        })),
        None => Err(ConfigError::Value {
            setting: row.name,
            origin,
            given: String::new(),
            reason: format!(": its type is {}", value.get_ref().type_str()),
            accepted: row.kind.accepted(),
        }),
    }
}

/// A TOML value as it is written in a variable. `None` for types that no setting has.
fn plain_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .map(|number| number.to_string()),
        DeValue::Boolean(true) => Some("yes".to_owned()),
        DeValue::Boolean(false) => Some("no".to_owned()),
        DeValue::Array(items) => {
            let words: Option<Vec<String>> = items
                .iter()
                .map(|item| item.get_ref().as_str().map(str::to_owned))
                .collect();
            words.map(|words| words.join(" "))
        }
        _ => None,
    }
}
