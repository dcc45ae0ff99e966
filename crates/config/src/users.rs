//! Users in the settings file: `user = ["alice on >secret ~jobs:* +@all"]`, an item for each `user` line
//! of a redis.conf.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use toml::Spanned;
use toml::de::DeValue;

use crate::error::{ConfigError, Origin};
use crate::settings::{ChannelsDefault, StoreKind};
use crate::table::Settings;
use crate::value::toml_string;
use quoin_acl::{Defaults, Definition, file};

/// The name of the list in the settings file. It is not a setting: flags, variables and CONFIG have no
/// users.
pub(super) const NAME: &str = "user";

/// The list in a file.
#[derive(Debug)]
pub(super) struct UsersEntry {
    /// Name and rules of each user.
    pub(super) lines: Vec<String>,
    /// The place of the list.
    pub(super) origin: Origin,
    /// The place of the value in the text, in bytes.
    pub(super) value_span: Range<usize>,
}

/// Users of the settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUsers {
    /// Their rules, by their names.
    pub definitions: BTreeMap<Bytes, Definition>,
    /// Their source.
    pub origin: Origin,
}

impl UsersEntry {
    /// Reads the list. A single user may be a string.
    pub(super) fn read(value: &Spanned<DeValue<'_>>, origin: Origin) -> Result<Self, ConfigError> {
        let lines: Option<Vec<String>> = match value.get_ref() {
            DeValue::String(line) => Some(vec![line.to_string()]),
            DeValue::Array(items) => items
                .iter()
                .map(|item| item.get_ref().as_str().map(str::to_owned))
                .collect(),
            _ => None,
        };
        let Some(lines) = lines else {
            return Err(ConfigError::Value {
                setting: NAME,
                origin,
                given: String::new(),
                reason: String::new(),
                accepted: "a list of strings, each with the name of a user and rules as in ACL \
                           SETUSER"
                    .to_owned(),
            });
        };
        Ok(Self {
            lines,
            origin,
            value_span: value.span(),
        })
    }

    /// The users, if these settings allow users in the file. As in a redis.conf, they exclude an
    /// `aclfile`.
    pub(super) fn users(&self, settings: &Settings) -> Result<FileUsers, ConfigError> {
        let refuse = |reason: String| ConfigError::Users {
            origin: self.origin.clone(),
            reason,
        };
        if settings.aclfile.is_some() {
            return Err(refuse(
                "the settings file has users, and aclfile names another file of users: use only \
                 one of them"
                    .to_owned(),
            ));
        }
        if settings.store == StoreKind::Fdb {
            return Err(refuse(
                "the settings file has users, but the users of a FoundationDB cluster are in its \
                 store, for all servers: create them with ACL SETUSER, or set aclfile and run ACL \
                 LOAD once"
                    .to_owned(),
            ));
        }
        let defaults = Defaults {
            all_channels: settings.acl_pubsub_default == ChannelsDefault::AllChannels,
        };
        let mut definitions = BTreeMap::new();
        for line in &self.lines {
            let (name, definition) = file::parse_user(line, defaults).map_err(refuse)?;
            let shown = String::from_utf8_lossy(&name).into_owned();
            if definitions.insert(name, definition).is_some() {
                return Err(refuse(format!("user '{shown}' appears twice")));
            }
        }
        Ok(FileUsers {
            definitions,
            origin: self.origin.clone(),
        })
    }
}

/// The value of a list of these lines in TOML, a line for each.
pub(super) fn to_toml(lines: &[String]) -> String {
    let items: String = lines
        .iter()
        .map(|line| format!("  {},\n", toml_string(line)))
        .collect();
    format!("[\n{items}]")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::load::load;
    use crate::{LoadedSettings, table};

    fn load_text(text: &str, flags: &[(&str, &str)]) -> Result<LoadedSettings, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quoin.toml");
        std::fs::write(&path, text).unwrap();
        let flags = flags
            .iter()
            .map(|(name, value)| (table::find(name).unwrap(), (*value).to_owned()));
        let error = |error: ConfigError| {
            let text = error.to_string();
            text.replace(&path.display().to_string(), "FILE")
        };
        load(Some(PathBuf::from(&path)), [], flags).map_err(error)
    }

    #[test]
    fn users_are_read_with_their_rules() {
        let text =
            "timeout = 1\nuser = [\n  \"alice on >opensesame ~jobs:* +@all\",\n  'bob off',\n]\n";
        let loaded = load_text(text, &[]).unwrap();
        let users = loaded.users.as_ref().unwrap();
        let names: Vec<&[u8]> = users.definitions.keys().map(AsRef::as_ref).collect();
        assert_eq!(names, [b"alice".as_slice(), b"bob"]);
        let alice = &users.definitions[b"alice".as_slice()];
        assert!(alice.accepts(b"opensesame") && !alice.accepts(b"other"));
        let shown = loaded.describe();
        assert!(shown.contains("# user: 2 users, not shown"), "{shown}");
        assert!(!shown.contains("opensesame"), "{shown}");

        let one = load_text("user = \"alice on nopass\"", &[]).unwrap();
        assert_eq!(one.users.unwrap().definitions.len(), 1);
        assert!(load_text("", &[]).unwrap().users.is_none());
    }

    #[test]
    fn what_is_wrong_is_named_without_passwords() {
        for (text, expected) in [
            (
                "\nuser = ['alice on >secret +nosuch']",
                "FILE:2: user 'alice': Error in applying operation '+nosuch': Unknown command or \
                 category name in ACL.",
            ),
            (
                "user = ['alice >secret (+@all']",
                "FILE:1: user 'alice': Unmatched parenthesis in \
                 selector definition.",
            ),
            (
                "user = ['alice on', 'alice off']",
                "FILE:1: user 'alice' appears twice",
            ),
            ("user = ['']", "FILE:1: a user without a name"),
            (
                "user = 7",
                "user (FILE:1): wrong value; accepted: a list of strings, each with the name of a \
                 user and rules as in ACL SETUSER",
            ),
        ] {
            let error = load_text(text, &[]).unwrap_err();
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn another_place_for_users_excludes_them() {
        let text = "user = ['alice on nopass']";
        let error = load_text(text, &[("aclfile", "/users.acl")]).unwrap_err();
        assert!(
            error.starts_with("FILE:1: the settings file has users, and aclfile"),
            "{error}"
        );
        let error = load_text(text, &[("store", "fdb")]).unwrap_err();
        assert!(
            error.contains("FILE:1: the settings file has users, but"),
            "{error}"
        );
    }
}
