//! Users and selectors as rules that make them again (Redis: `ACLDescribeUser`).

use super::definition::Definition;
use super::selector::{KeyPattern, Selector};

impl Definition {
    /// The rules of the user, as ACL LIST shows them after its name and as files have them.
    pub fn describe(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for flag in self.flags() {
            text.extend_from_slice(flag.name().as_bytes());
            text.push(b' ');
        }
        for password in self.passwords() {
            text.push(b'#');
            text.extend_from_slice(password.as_bytes());
            text.push(b' ');
        }
        text.extend(self.root.describe());
        for selector in &self.others {
            text.extend_from_slice(b" (");
            text.extend(selector.describe());
            text.push(b')');
        }
        text
    }
}

impl Selector {
    fn describe(&self) -> Vec<u8> {
        let mut text = self.keys();
        if !text.is_empty() {
            text.push(b' ');
        }
        if !self.all_channels {
            text.extend_from_slice(b"resetchannels ");
        }
        let channels = self.channels();
        if !channels.is_empty() {
            text.extend(channels);
            text.push(b' ');
        }
        text.extend_from_slice(self.command_rules().as_bytes());
        text
    }

    /// The rules on commands: `-@all +get`.
    pub fn command_rules(&self) -> String {
        let first = match self.allows_future_commands {
            true => "+@all",
            false => "-@all",
        };
        let mut rules = first.to_owned();
        for rule in &self.command_rules {
            rules.push(' ');
            rules.push_str(rule);
        }
        rules
    }

    /// The rules on keys: `~app:* %R~shared:*`.
    pub fn keys(&self) -> Vec<u8> {
        if self.all_keys {
            return b"~*".to_vec();
        }
        let patterns = self.keys.iter().map(|one| {
            let KeyPattern {
                pattern,
                reads,
                writes,
            } = one;
            let access: &[u8] = match (reads, writes) {
                (true, true) => b"~",
                (true, false) => b"%R~",
                (false, _) => b"%W~",
            };
            [access, pattern].concat()
        });
        patterns.collect::<Vec<_>>().join(&b' ')
    }

    /// The rules on channels: `&news.*`.
    pub fn channels(&self) -> Vec<u8> {
        if self.all_channels {
            return b"&*".to_vec();
        }
        let patterns = self.channels.iter();
        let patterns = patterns.map(|pattern| [b"&", pattern.as_ref()].concat());
        patterns.collect::<Vec<_>>().join(&b' ')
    }
}
