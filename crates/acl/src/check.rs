//! Whether a user may run a command (Redis: `ACLCheckAllUserCommandPerm`).

use bytes::Bytes;

use super::definition::Definition;
use super::denial::{Denial, Reason};
use super::selector::Selector;
use quoin_base::glob::{self, Case};
use quoin_data::command::flags::Flags;
use quoin_data::command::key_specs::KeyFlags;
use quoin_data::command::row::Row;
use quoin_data::command::row::{ConnectionCommand, Handler};

/// A key among a command's arguments.
#[derive(Clone, Copy)]
struct KeyUse {
    position: usize,
    reads: bool,
    writes: bool,
}

/// How a command uses the channels that it names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChannelUse {
    /// One name.
    Publish,
    /// Every argument is a name.
    Subscribe,
    /// Every argument is a pattern.
    SubscribePatterns,
}

impl ChannelUse {
    fn of(row: &Row) -> Option<Self> {
        use ConnectionCommand::{Psubscribe, Ssubscribe, Subscribe};
        match row.handler {
            Handler::Connection(Subscribe | Ssubscribe) => Some(Self::Subscribe),
            Handler::Connection(Psubscribe) => Some(Self::SubscribePatterns),
            _ if matches!(row.name, "publish" | "spublish") => Some(Self::Publish),
            _ => None,
        }
    }
}

/// What a command does to the values of keys, of Redis's words for it.
fn accesses(flags: KeyFlags) -> (bool, bool) {
    let writes = |flag: &&str| matches!(*flag, "insert" | "delete" | "update");
    (flags.contains(&"access"), flags.iter().any(writes))
}

/// The keys of a command; none where its arguments do not fit, as it is refused for that then.
fn keys_of(row: &Row, arguments: &[Bytes]) -> Vec<KeyUse> {
    let mut all = Vec::new();
    for spec in row.keys.iter().filter(|spec| spec.is_key()) {
        let (reads, writes) = accesses(spec.flags_of(arguments));
        let Some(positions) = spec.touched(arguments) else {
            return Vec::new();
        };
        all.extend(positions.into_iter().map(|position| KeyUse {
            position,
            reads,
            writes,
        }));
    }
    // MIGRATE with KEYS has an empty argument where the key stands otherwise.
    let is_migrate = matches!(row.handler, Handler::Connection(ConnectionCommand::Migrate));
    let is_blank = |key: &KeyUse| arguments.get(key.position).is_some_and(Bytes::is_empty);
    if is_migrate && all.len() > 1 && all.first().is_some_and(is_blank) {
        all.remove(0);
    }
    all
}

/// The keys of a command, found at most once for all selectors.
struct Keys<'a> {
    row: &'a Row,
    arguments: &'a [Bytes],
    found: Option<Vec<KeyUse>>,
}

impl Keys<'_> {
    fn get(&mut self) -> &[KeyUse] {
        self.found
            .get_or_insert_with(|| keys_of(self.row, self.arguments))
    }
}

impl Definition {
    /// Whether everything is allowed.
    pub fn is_open(&self) -> bool {
        self.selectors().any(Selector::is_open)
    }

    /// Whether a command with these arguments is allowed.
    ///
    /// # Errors
    /// Why it is not: where selectors refuse it for several reasons, the one that came nearest.
    pub fn check(&self, row: &Row, arguments: &[Bytes]) -> Result<(), Denial> {
        let mut denial = Denial {
            reason: Reason::Command,
            position: 0,
        };
        let mut keys = Keys {
            row,
            arguments,
            found: None,
        };
        for selector in self.selectors() {
            let Err(next) = selector.check(row, arguments, &mut keys) else {
                return Ok(());
            };
            if (next.reason, next.position) > (denial.reason, denial.position) {
                denial = next;
            }
        }
        Err(denial)
    }

    /// Whether a command is allowed by a selector that allows to read every key: what SORT demands
    /// for keys that the sorted elements name.
    pub fn reads_all_keys(&self, row: &Row, arguments: &[Bytes]) -> bool {
        let mut keys = Keys {
            row,
            arguments,
            found: None,
        };
        self.selectors().any(|selector| {
            selector.reads_all_keys() && selector.check(row, arguments, &mut keys).is_ok()
        })
    }

    /// Whether every channel and pattern is allowed that `before` allowed, as far as rules tell.
    pub fn hears_as_much_as(&self, before: &Self) -> bool {
        if self.selectors().any(|selector| selector.all_channels) {
            return true;
        }
        let knows = |pattern: &Bytes| {
            let mut selectors = self.selectors();
            selectors.any(|selector| selector.channels.contains(pattern))
        };
        before
            .selectors()
            .all(|selector| !selector.all_channels && selector.channels.iter().all(knows))
    }

    /// Whether a client may be subscribed to a channel or to a pattern of channels.
    pub fn hears(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.selectors()
            .any(|selector| selector.allows_channel(channel, is_pattern))
    }
}

impl Selector {
    fn check(&self, row: &Row, arguments: &[Bytes], keys: &mut Keys<'_>) -> Result<(), Denial> {
        let denied = |reason, position| Err(Denial { reason, position });
        if !self.allows_command(row, arguments) {
            return denied(Reason::Command, 0);
        }
        if !self.all_keys && row.has_keys() {
            let is_denied = |key: &&KeyUse| {
                let name = arguments.get(key.position);
                !name.is_some_and(|name| self.allows_key(name, key.reads, key.writes))
            };
            if let Some(key) = keys.get().iter().find(is_denied) {
                return denied(Reason::Key, key.position);
            }
        }
        if !self.all_channels
            && let Some(channel_use) = ChannelUse::of(row)
        {
            let count = match channel_use {
                ChannelUse::Publish => 1,
                ChannelUse::Subscribe | ChannelUse::SubscribePatterns => usize::MAX,
            };
            let is_pattern = channel_use == ChannelUse::SubscribePatterns;
            let mut channels = arguments.iter().enumerate().skip(1).take(count);
            let denied_channel = channels.find(|(_, name)| !self.allows_channel(name, is_pattern));
            if let Some((position, _)) = denied_channel {
                return denied(Reason::Channel, position);
            }
        }
        Ok(())
    }

    fn allows_command(&self, row: &Row, arguments: &[Bytes]) -> bool {
        if self.all_commands || row.flags.contains(Flags::NO_AUTH) || self.commands.contains(row.id)
        {
            return true;
        }
        let Some(allowed) = self.first_arguments.get(&row.id) else {
            return false;
        };
        let first = arguments.get(1);
        first.is_some_and(|first| allowed.iter().any(|one| one.eq_ignore_ascii_case(first)))
    }

    fn allows_key(&self, name: &[u8], reads: bool, writes: bool) -> bool {
        self.keys.iter().any(|one| {
            one.allows(reads, writes) && glob::matches(&one.pattern, name, Case::Sensitive)
        })
    }

    fn reads_all_keys(&self) -> bool {
        self.all_keys || self.keys.iter().any(|one| one.reads && one.pattern == "*")
    }

    /// A pattern of a client must be one of the user's, to the byte.
    fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.all_channels
            || self.channels.iter().any(|pattern| match is_pattern {
                true => pattern == channel,
                false => glob::matches(pattern, channel, Case::Sensitive),
            })
    }
}
