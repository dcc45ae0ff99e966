//! What to tell somebody who brings Redis's settings.

use super::parameters::PARAMETERS;
use super::table::{self, SETTINGS};
use super::users;

/// Words that begin lines of a redis.conf and that CONFIG GET does not know.
const DIRECTIVES: [&str; 4] = ["include", "loadmodule", "rename-command", "user"];

/// What stands for a setting of Redis that Quoin has not, by the beginning of its name.
const INSTEAD: [(&str, &str); 13] = [
    (
        "appendonly",
        "every write is kept; fsync says when it is on the disk",
    ),
    ("appendfsync", "its place takes fsync"),
    ("dir", "its place takes data-dir"),
    (
        "save",
        "every write is kept as it comes; fsync says when it is on the disk",
    ),
    ("daemonize", "let a service manager start it"),
    ("supervised", "let a service manager start it"),
    ("pidfile", "let a service manager start it"),
    (
        "syslog-",
        "the log goes to the standard error, or to logfile",
    ),
    ("tls-", "there is no such choice"),
    (
        "cluster-",
        "servers on one FoundationDB cluster share their data",
    ),
    (
        "replicaof",
        "servers on one FoundationDB cluster share their data",
    ),
    (
        "slaveof",
        "servers on one FoundationDB cluster share their data",
    ),
    ("databases", "there are always 16"),
];

/// For a setting that Redis has and Quoin has not: that it is so, and what there is instead.
pub(crate) fn of_redis(name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    let is_redis = PARAMETERS
        .iter()
        .any(|row| row.name == name || row.alias == name);
    if !is_redis || name.is_empty() {
        return None;
    }
    let instead = INSTEAD.iter().find(|(begin, _)| name.starts_with(begin));
    let instead = instead.map_or(String::new(), |(_, text)| format!(" ({text})"));
    Some(format!("; Redis has it, Quoin does not{instead}"))
}

/// What a redis.conf says that was given instead of a settings file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RedisConf {
    /// The number of the first line that says something.
    pub(super) line: usize,
    /// Its settings that Quoin has too, as lines of a settings file of Quoin. Passwords are not shown.
    pub(super) known: Vec<String>,
    /// Lines whose values Quoin does not take, each with the reason.
    pub(super) refused: Vec<String>,
    /// Lines that Quoin has no setting for.
    pub(super) others: usize,
}

/// Where `text` is one of Redis's settings files, which its first line that is no comment tells: what
/// is in it.
pub(super) fn redis_conf(text: &str) -> Option<RedisConf> {
    let says_something = |line: &str| !line.trim().is_empty() && !line.trim().starts_with('#');
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| says_something(line))
        .peekable();
    let (at, first) = *lines.peek()?;
    redis_setting(first)?;
    let mut conf = RedisConf {
        line: at + 1,
        known: Vec::new(),
        refused: Vec::new(),
        others: 0,
    };
    for (_, line) in lines {
        match redis_setting(line).and_then(|(name, value)| in_toml(name, value)) {
            Some(Ok(known)) => conf.known.push(known),
            Some(Err(reason)) => conf.refused.push(format!("{}: {reason}", line.trim())),
            None => conf.others += 1,
        }
    }
    Some(conf)
}

/// The name and the value of a line that is written as in a redis.conf.
fn redis_setting(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.trim().split_once(char::is_whitespace)?;
    let value = value.trim();
    let is_known = DIRECTIVES
        .into_iter()
        .chain(SETTINGS.iter().map(|row| row.name))
        .chain(PARAMETERS.iter().flat_map(|row| [row.name, row.alias]))
        .any(|known| known.eq_ignore_ascii_case(name));
    (is_known && !value.starts_with('=')).then_some((name, value))
}

/// The line that stands in a settings file of Quoin for one of a redis.conf, or why its value is not
/// taken. `None` if Quoin has no such setting.
fn in_toml(name: &str, value: &str) -> Option<Result<String, String>> {
    if name.eq_ignore_ascii_case(users::NAME) {
        return Some(Ok(format!("{} = [\"…\"]", users::NAME)));
    }
    let row = table::find(name)?;
    if row.is_secret() {
        return Some(Ok(format!("{} = \"…\"", row.name)));
    }
    let value = row.kind.normalise(value, row.default);
    Some(value.map(|value| format!("{} = {}", row.name, row.kind.to_toml(&value))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_of_redis_is_known_as_such() {
        assert_eq!(
            of_redis("DaemonIze").as_deref(),
            Some("; Redis has it, Quoin does not (let a service manager start it)")
        );
        assert_eq!(
            of_redis("hz").as_deref(),
            Some("; Redis has it, Quoin does not")
        );
        assert_eq!(of_redis("prot"), None);
        assert_eq!(of_redis(""), None);
    }

    #[test]
    fn every_hint_is_of_a_setting_that_redis_has_and_quoin_has_not() {
        for (begin, _) in INSTEAD {
            assert!(
                PARAMETERS
                    .iter()
                    .any(|row| row.name.starts_with(begin) || row.alias.starts_with(begin)),
                "{begin}"
            );
            assert!(table::find(begin).is_none(), "{begin}");
        }
    }

    #[test]
    fn a_redis_conf_is_told_from_toml_that_is_wrong() {
        assert_eq!(
            redis_conf(
                "# Redis\n\ndaemonize no\nrequirepass foo\nbind 127.0.0.1 ::1\nuser a on >b\n"
            ),
            Some(RedisConf {
                line: 3,
                known: vec![
                    "requirepass = \"…\"".to_owned(),
                    "bind = [\"127.0.0.1\", \"::1\"]".to_owned(),
                    "user = [\"…\"]".to_owned(),
                ],
                refused: Vec::new(),
                others: 1,
            })
        );
        let evicting = redis_conf("maxmemory 100mb\nmaxmemory-policy allkeys-lru\n").unwrap();
        assert_eq!(evicting.known, ["maxmemory = 104857600"]);
        let [refused] = evicting.refused.as_slice() else {
            panic!("{:?}", evicting.refused);
        };
        assert!(
            refused.starts_with("maxmemory-policy allkeys-lru: ") && refused.contains("noeviction")
        );
        let without = redis_conf("save 900 1\n").unwrap();
        assert_eq!((without.line, without.others), (1, 1));
        assert!(without.known.is_empty());
        // A line of a file for Quoin that lacks its sign does not make it Redis's.
        assert_eq!(redis_conf("timeout = 1\nport 2\n"), None);
        assert_eq!(redis_conf("something 2\n"), None);
        assert_eq!(redis_conf("port =\nport\n"), None);
    }
}
