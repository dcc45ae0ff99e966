//! Errors of settings, with texts that help to correct them, and the source of a value.

use std::fmt;
use std::path::PathBuf;

/// Why the settings or the command line are not accepted.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A value does not fit its setting. A password is never repeated.
    #[error("{setting} ({origin}): wrong value{given}{reason}; accepted: {accepted}")]
    Value {
        /// Name of the setting.
        setting: &'static str,
        /// The source of the value.
        origin: Origin,
        /// The value in quotes after a space, or nothing for a password.
        given: String,
        /// The reason after a colon, if `accepted` does not explain it.
        reason: String,
        /// What is accepted.
        accepted: String,
    },
    /// A key of the file or a `QUOIN_*` variable that is not a setting.
    #[error("{origin}: no such setting{given}{hint}")]
    Unknown {
        /// The name in quotes after a colon, or nothing if `origin` contains it.
        given: String,
        /// Its source.
        origin: Origin,
        /// A suggestion, or nothing.
        hint: String,
    },
    /// A file that cannot be read.
    #[error("settings file {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file is larger than a settings file may be.
    #[error("settings file {}: larger than {max} bytes", path.display())]
    FileTooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        max: u64,
    },
    /// Users of the settings file that cannot hold. Passwords are never repeated.
    #[error("{origin}: {reason}")]
    Users {
        /// Their source.
        origin: Origin,
        /// Why they cannot hold.
        reason: String,
    },
    /// A settings file of Redis.
    #[error(
        "{origin}: this is a redis.conf, which Quoin does not read. Quoin's settings file is TOML, \
         and config/quoin.toml shows every setting; `quoin check-config --config FILE > \
         quoin.toml` translates a redis.conf"
    )]
    RedisConf {
        /// The first line that shows this.
        origin: Origin,
        /// The settings in it that Quoin also has, as a settings file.
        toml: String,
    },
    /// The file is not TOML.
    #[error("{origin}: not TOML: {message}")]
    Toml {
        /// The place of the error.
        origin: Origin,
        /// The error of the parser.
        message: String,
    },
    /// The store that was asked for is not part of this build.
    #[error(
        "store fdb ({0}): this quoin was built without FoundationDB. Build it with \
         `cargo build --release --features fdb`, which needs libclang (Debian: libclang-dev) and \
         FoundationDB's client library libfdb_c 7.3 (the foundationdb-clients package), or use \
         --store embedded"
    )]
    StoreNotBuilt(Origin),
    /// The command line does not follow the usage: the whole text to show.
    #[error("{0}")]
    Usage(String),
    /// Several things are wrong.
    #[error("the settings have {} errors:{}", .0.len(), lines(.0))]
    Several(Vec<ConfigError>),
}

/// Each error on a line of its own.
fn lines(errors: &[ConfigError]) -> String {
    errors.iter().map(|error| format!("\n  {error}")).collect()
}

impl ConfigError {
    /// Combines the errors into one. `Ok` without errors.
    pub(super) fn all(mut errors: Vec<ConfigError>) -> Result<(), ConfigError> {
        match errors.pop() {
            None => Ok(()),
            Some(error) if errors.is_empty() => Err(error),
            Some(error) => {
                errors.push(error);
                Err(ConfigError::Several(errors))
            }
        }
    }

    /// The exit code of the program: 2 for a wrong command line, 1 for all else.
    pub fn exit_code(&self) -> u8 {
        match self {
            ConfigError::Usage(_) => 2,
            ConfigError::Several(errors) => {
                errors.iter().map(ConfigError::exit_code).max().unwrap_or(1)
            }
            ConfigError::Value { origin, .. } | ConfigError::StoreNotBuilt(origin) => {
                match origin {
                    Origin::Flag(_) => 2,
                    _ => 1,
                }
            }
            _ => 1,
        }
    }
}

/// `; did you mean 'name'?` with the known name nearest to `given`, or nothing if no name is near.
pub fn suggest<'n>(given: &str, known: impl Iterator<Item = &'n str>) -> String {
    let given = given.to_ascii_lowercase();
    known
        .map(|name| (distance(&given, &name.to_ascii_lowercase()), name))
        .min()
        .filter(|&(distance, name)| distance <= name.len().div_ceil(3))
        .map(|(_, name)| format!("; did you mean '{name}'?"))
        .unwrap_or_default()
}

/// Number of letters to insert, remove or change to get from one text to the other (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.bytes().enumerate() {
        let mut next = vec![i + 1];
        let mut left = i + 1;
        for (b, window) in to.bytes().zip(row.windows(2)) {
            let &[diagonal, above] = window else { break };
            left = (diagonal + usize::from(a != b))
                .min(above + 1)
                .min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(from.len())
}

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The table of settings.
    Default,
    /// A line of the settings file, counted from 1.
    File(PathBuf, usize),
    /// An environment variable.
    Variable(String),
    /// A flag, with its dashes.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path, line) => write!(f, "{}:{line}", path.display()),
            Origin::Variable(name) => write!(f, "environment variable {name}"),
            Origin::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_levenshtein() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("same", "same"), 0);
    }

    #[test]
    fn only_a_near_name_is_suggested() {
        let known = || ["port", "maxclients"].into_iter();
        assert_eq!(suggest("prot", known()), "; did you mean 'port'?");
        assert_eq!(
            suggest("MAXCLIENT", known()),
            "; did you mean 'maxclients'?"
        );
        assert_eq!(suggest("qqqqqqqqqqqqqqqq", known()), "");
    }
}
