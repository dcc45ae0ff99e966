//! A selector: a set of commands, keys and channels that a user may use together.

use std::collections::BTreeMap;

use bytes::Bytes;

use quoin_data::command::row::Row;
use quoin_data::table;

/// A pattern of keys, and whether they may be read, written or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPattern {
    /// The glob pattern.
    pub pattern: Bytes,
    /// Values of such keys may be read.
    pub reads: bool,
    /// Such keys may be changed.
    pub writes: bool,
}

impl KeyPattern {
    /// Whether it allows such an access, if a key matches the pattern.
    pub(super) fn allows(&self, reads: bool, writes: bool) -> bool {
        (self.reads || !reads) && (self.writes || !writes)
    }
}

/// A set of commands, keys and channels that a user may use together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector {
    /// Every key may be read and changed.
    pub(super) all_keys: bool,
    /// Every channel may be used.
    pub(super) all_channels: bool,
    /// Every command may be called.
    pub(super) all_commands: bool,
    /// `+@all` was the last rule on all commands. Commands of a newer server are allowed, too.
    allows_future_commands: bool,
    /// The commands that may be called.
    pub(super) commands: CommandSet,
    /// First arguments with which an otherwise forbidden command may be called.
    pub(super) first_arguments: BTreeMap<usize, Vec<Bytes>>,
    /// The keys that may be used.
    pub(super) keys: Vec<KeyPattern>,
    /// The channels that may be used, as glob patterns.
    pub(super) channels: Vec<Bytes>,
    /// The rules on commands since the last `+@all` or `-@all`, each once, in order.
    pub(super) command_rules: Vec<String>,
}

impl Selector {
    /// A selector that allows nothing, or only all channels.
    pub(super) fn new(all_channels: bool) -> Self {
        Self {
            all_channels,
            ..Self::default()
        }
    }

    /// Whether it allows everything.
    pub(super) fn is_open(&self) -> bool {
        self.all_commands && self.all_keys && self.all_channels
    }

    /// Allows every command.
    pub(super) fn allow_all_commands(&mut self) {
        self.commands = CommandSet::all();
        self.all_commands = true;
        self.allows_future_commands = true;
        self.command_rules.clear();
        self.first_arguments.clear();
    }

    /// Allows no command.
    pub(super) fn forbid_all_commands(&mut self) {
        self.commands = CommandSet::default();
        self.all_commands = false;
        self.allows_future_commands = false;
        self.command_rules.clear();
        self.first_arguments.clear();
    }

    /// Allows or forbids a command and its subcommands.
    pub(super) fn change(&mut self, row: &Row, allows: bool) {
        self.set(row.id, allows);
        self.first_arguments.remove(&row.id);
        for subcommand in table::subcommands(row) {
            self.set(subcommand.id, allows);
        }
    }

    fn set(&mut self, id: usize, allows: bool) {
        self.commands.set(id, allows);
        self.all_commands = allows && (self.all_commands || self.commands == CommandSet::all());
    }

    /// Allows a command with this first argument.
    pub(super) fn allow_first_argument(&mut self, id: usize, argument: &[u8]) {
        let known = self.first_arguments.entry(id).or_default();
        if !known.iter().any(|one| one.eq_ignore_ascii_case(argument)) {
            known.push(Bytes::copy_from_slice(argument));
        }
    }

    /// Remembers a rule on a command or a category. It replaces earlier rules on the same name and on the
    /// command's subcommands.
    pub(super) fn note_command_rule(&mut self, what: &str, allows: bool) {
        let what = what.to_ascii_lowercase();
        self.command_rules.retain(|rule| {
            let known = rule.get(1..).unwrap_or_default();
            let rest = known.strip_prefix(what.as_str());
            !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('|'))
        });
        let sign = if allows { '+' } else { '-' };
        self.command_rules.push(format!("{sign}{what}"));
    }
}

impl Selector {
    pub(super) fn describe(&self) -> Vec<u8> {
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

/// A set of commands and subcommands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CommandSet {
    words: Vec<u64>,
}

impl CommandSet {
    /// All commands.
    pub(super) fn all() -> Self {
        let words = table::of_all_ports().len().div_ceil(64);
        Self {
            words: vec![u64::MAX; words],
        }
    }

    pub(super) fn contains(&self, id: usize) -> bool {
        let word = self.words.get(id / 64).copied().unwrap_or(0);
        word & (1 << (id % 64)) != 0
    }

    pub(super) fn set(&mut self, id: usize, is_in: bool) {
        if self.words.len() <= id / 64 {
            self.words.resize(id / 64 + 1, 0);
        }
        if let Some(word) = self.words.get_mut(id / 64) {
            let bit = 1 << (id % 64);
            match is_in {
                true => *word |= bit,
                false => *word &= !bit,
            }
        }
    }
}
