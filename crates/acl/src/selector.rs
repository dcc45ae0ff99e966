//! A selector: a set of commands, keys and channels that a user may use together.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::command_set::CommandSet;
use quoin_data::command::row::Row;
use quoin_data::table;

/// A pattern of keys, and what may be done to them. At least one of both.
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
    /// `+@all` was the last rule on all commands: what a newer server adds is allowed, too.
    pub(super) allows_future_commands: bool,
    /// The commands that may be called.
    pub(super) commands: CommandSet,
    /// First arguments with which commands may be called that may not be called otherwise.
    pub(super) first_arguments: BTreeMap<usize, Vec<Bytes>>,
    /// The keys that may be used.
    pub(super) keys: Vec<KeyPattern>,
    /// The channels that may be used, as glob patterns.
    pub(super) channels: Vec<Bytes>,
    /// The rules on commands since the last `+@all` or `-@all`, each once, in order.
    pub(super) command_rules: Vec<String>,
}

impl Selector {
    /// What allows nothing, or all channels only.
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

    /// Remembers a rule on a command or a category. It replaces rules on the same, and those on the
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
