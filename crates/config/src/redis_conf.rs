//! Translates a redis.conf that was given instead of a settings file.

use bytes::Bytes;

use crate::parameters::PARAMETERS;
use crate::table::{SETTINGS, SettingRow};
use crate::{table, users};
use quoin_acl::without_passwords;
use quoin_resp::wire::inline::split_arguments;

/// Words at the beginning of lines of a redis.conf that CONFIG GET does not know.
const DIRECTIVES: [&str; 4] = [INCLUDE, "loadmodule", "rename-command", users::NAME];
const INCLUDE: &str = "include";
/// The setting with addresses in a form that only Redis has.
const BIND: &str = "bind";

/// A redis.conf.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RedisConf {
    /// The number of the first line that is not a comment.
    pub(super) line: usize,
    /// A settings file of Quoin with the settings that Quoin has. Passwords are not shown.
    pub(super) toml: String,
}

/// Parses `text` if it is a redis.conf, which is decided by its first line that is not a comment.
pub(super) fn read(text: &str) -> Option<RedisConf> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    let mut lines = lines
        .filter(|(_, line)| !line.trim().is_empty() && !line.trim().starts_with('#'))
        .peekable();
    let (first, line) = *lines.peek()?;
    begins_as_redis(line).then_some(())?;
    let mut translation = Translation::default();
    for (number, line) in lines {
        translation.take(number, line);
    }
    Some(RedisConf {
        line: first,
        toml: translation.toml(),
    })
}

/// Whether a line is written as in a redis.conf.
fn begins_as_redis(line: &str) -> bool {
    let Some((name, value)) = line.trim().split_once(char::is_whitespace) else {
        return false;
    };
    let is_known = DIRECTIVES
        .into_iter()
        .chain(SETTINGS.iter().map(|row| row.name))
        .chain(PARAMETERS.iter().flat_map(|row| [row.name, row.alias]))
        .any(|known| known.eq_ignore_ascii_case(name));
    is_known && !value.trim().starts_with('=')
}

/// The translation so far.
#[derive(Default)]
struct Translation {
    /// Settings in the order of their first occurrence, each with its latest value.
    settings: Vec<(&'static SettingRow, String)>,
    users: Vec<String>,
    /// Comments about lines that Quoin does not accept unchanged.
    notes: Vec<String>,
    /// Lines of settings that Quoin does not have.
    others: usize,
}

impl Translation {
    fn take(&mut self, number: usize, line: &str) {
        let words = split_arguments(line.trim().as_bytes());
        let words = words.and_then(|words| words.iter().map(text).collect::<Option<Vec<_>>>());
        let Some((name, words)) = words.as_deref().and_then(<[String]>::split_first) else {
            self.notes
                .push(format!("line {number} has unbalanced quotes"));
            return;
        };
        if name.eq_ignore_ascii_case(users::NAME) {
            self.users.push(without_passwords(words).join(" "));
            return;
        }
        if name.eq_ignore_ascii_case(INCLUDE) {
            let file = words.join(" ");
            self.notes.push(format!(
                "line {number} includes {file}: add its settings here too"
            ));
            return;
        }
        let Some(row) = table::find(name) else {
            self.others += 1;
            return;
        };
        let given = match row.name {
            BIND => words.iter().map(|word| address(word)).collect::<Vec<_>>(),
            _ => words.iter().map(String::as_str).collect(),
        };
        let known = self
            .settings
            .iter()
            .position(|(known, _)| known.name == row.name);
        let present = known.and_then(|at| self.settings.get(at));
        let present = present.map_or(row.default, |(_, value)| value);
        match (row.kind.normalise(&given.join(" "), present), known) {
            (Ok(value), Some(at)) => {
                if let Some(place) = self.settings.get_mut(at) {
                    place.1 = value;
                }
            }
            (Ok(value), None) => self.settings.push((row, value)),
            (Err(_), _) => self.notes.push(format!(
                "line {number}: {} accepts {}",
                row.name,
                row.kind.accepted()
            )),
        }
    }

    fn toml(&self) -> String {
        let mut text = "# Translated from a redis.conf.\n".to_owned();
        for (row, value) in &self.settings {
            let line = match row.is_secret() && !value.is_empty() {
                true => format!("{} = \"…\" # not shown: put it here\n", row.name),
                false => format!("{} = {}\n", row.name, row.kind.to_toml(value)),
            };
            text.push_str(&line);
        }
        if !self.users.is_empty() {
            text.push_str(&format!(
                "{} = {}\n",
                users::NAME,
                users::to_toml(&self.users)
            ));
        }
        for note in &self.notes {
            // A comment ends with its line.
            text.push_str(&format!("# {}\n", note.escape_debug()));
        }
        match self.others {
            0 => {}
            1 => text.push_str("# 1 line has a setting that Quoin does not have.\n"),
            others => text.push_str(&format!(
                "# {others} lines have settings that Quoin does not have.\n"
            )),
        }
        text
    }
}

fn text(word: &Bytes) -> Option<String> {
    String::from_utf8(word.to_vec()).ok()
}

/// Translates an address of Redis: `-` before it means optional, `*` means all.
fn address(word: &str) -> &str {
    match word.strip_prefix('-').unwrap_or(word) {
        "*" => "0.0.0.0",
        "::*" => "::",
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toml(text: &str) -> String {
        read(text).unwrap().toml
    }

    #[test]
    fn a_redis_conf_is_told_from_toml_that_is_wrong() {
        assert_eq!(read("# Redis\n\ndaemonize no\nport 1\n").unwrap().line, 3);
        // Quoin's line without its equals sign does not make the file a redis.conf.
        assert_eq!(read("timeout = 1\nport 2\n"), None);
        assert_eq!(read("something 2\n"), None);
        assert_eq!(read("port =\nport\n"), None);
    }

    #[test]
    fn the_latest_line_counts_and_classes_of_clients_come_together() {
        assert_eq!(
            toml(
                "port 1\nPORT 2\nclient-output-buffer-limit normal 1 2 3\n\
                 client-output-buffer-limit replica 1kb 2 3\nsave 900 1\n"
            ),
            "# Translated from a redis.conf.\nport = 2\nclient-output-buffer-limit = \
             \"normal 1 2 3 slave 1024 2 3 pubsub 33554432 8388608 60\"\n\
             # 1 line has a setting that Quoin does not have.\n"
        );
    }

    #[test]
    fn a_policy_that_evicts_is_named_with_the_one_there_is() {
        let text = toml("maxmemory 100mb\nmaxmemory-policy allkeys-lru\n");
        assert!(text.contains("\nmaxmemory = 104857600\n"), "{text}");
        assert!(
            text.contains("\n# line 2: maxmemory-policy accepts noeviction"),
            "{text}"
        );
    }

    #[test]
    fn passwords_are_not_shown() {
        let text = toml("requirepass foo\nuser a on >bar ~*\nuser b off nopass\n");
        let hash = "fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9";
        assert_eq!(
            text,
            format!(
                "# Translated from a redis.conf.\nrequirepass = \"…\" # not shown: put it \
                 here\nuser = [\n  \"a on #{hash} ~*\",\n  \"b off nopass\",\n]\n"
            )
        );
    }

    #[test]
    fn what_is_not_taken_as_it_is_becomes_a_comment() {
        assert_eq!(
            toml("port 70000\ninclude /a\nlogfile \"a\nbind -::1 * -::*\n"),
            "# Translated from a redis.conf.\nbind = [\"::1\", \"0.0.0.0\", \"::\"]\n\
             # line 1: port accepts a whole number from 0 to 65535\n\
             # line 2 includes /a: add its settings here too\n# line 3 has unbalanced quotes\n"
        );
    }
}
