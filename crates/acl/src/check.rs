//! Whether a user may run a command (Redis: `ACLCheckAllUserCommandPerm`), and why not.

use bytes::Bytes;

use crate::definition::Definition;
use crate::selector::Selector;
use quoin_base::glob;
use quoin_base::glob::Case;
use quoin_data::command::flags::Flags;
use quoin_data::command::key_specs::KeyFlags;
use quoin_data::command::row::{ConnectionCommand, Handler, Row};

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

/// Whether a command reads and writes the values of keys, from Redis's flags of the key specification.
fn accesses(flags: KeyFlags) -> (bool, bool) {
    let writes = |flag: &&str| matches!(*flag, "insert" | "delete" | "update");
    (flags.contains(&"access"), flags.iter().any(writes))
}

/// The keys of a command. Empty if its arguments do not fit: the command is then refused for that.
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
    // MIGRATE with KEYS has an empty argument in place of the key.
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
    /// Why it is not allowed. If selectors refuse it for different reasons, the reason of the
    /// selector that came closest to allowing it.
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

    /// Whether a selector allows the command and reads of every key. SORT needs that for keys that
    /// elements name.
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

    /// Whether a selector allows the command and reads of this key.
    pub fn reads_key(&self, row: &Row, arguments: &[Bytes], name: &[u8]) -> bool {
        self.selectors().any(|selector| {
            let reads = selector.all_keys || selector.allows_key(name, true, false);
            reads && selector.allows_command(row, arguments)
        })
    }

    /// Whether every channel and pattern that `before` allowed is still allowed. Compares the patterns of
    /// rules.
    pub fn keeps_channels_of(&self, before: &Self) -> bool {
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
    pub fn may_subscribe(&self, channel: &[u8], is_pattern: bool) -> bool {
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

    /// A client's pattern must be equal to one of the user's.
    fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.all_channels
            || self.channels.iter().any(|pattern| match is_pattern {
                true => pattern == channel,
                false => glob::matches(pattern, channel, Case::Sensitive),
            })
    }
}

/// Why something is refused. If selectors differ, the greatest reason counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The command is not allowed.
    Command,
    /// A key is not allowed.
    Key,
    /// The name or the password is wrong.
    Auth,
    /// A channel is not allowed.
    Channel,
}

impl Reason {
    /// Its name in ACL LOG.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
            Reason::Auth => "auth",
        }
    }
}

/// Why a user may not run a command with these arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Denial {
    /// The kind of object that is not allowed.
    pub reason: Reason,
    /// The position of the key or the channel among the arguments.
    pub position: usize,
}

impl Denial {
    /// The object in ACL LOG: the command, the key or the channel.
    pub fn object(&self, row: &Row, arguments: &[Bytes]) -> Bytes {
        match self.reason {
            Reason::Command => Bytes::from_static(row.name.as_bytes()),
            _ => arguments.get(self.position).cloned().unwrap_or_default(),
        }
    }

    /// The error text for the client, after its code.
    pub fn message(&self, user: &[u8], row: &Row) -> String {
        match self.reason {
            Reason::Key => "No permissions to access a key".to_owned(),
            Reason::Channel => "No permissions to access a channel".to_owned(),
            Reason::Command | Reason::Auth => format!(
                "User {} has no permissions to run the '{}' command",
                String::from_utf8_lossy(user),
                row.name
            ),
        }
    }

    /// The answer of ACL DRYRUN.
    pub fn detail(&self, user: &[u8], row: &Row, arguments: &[Bytes]) -> Vec<u8> {
        let what: &[u8] = match self.reason {
            Reason::Command | Reason::Auth => return self.message(user, row).into_bytes(),
            Reason::Key => b"' key",
            Reason::Channel => b"' channel",
        };
        let object = self.object(row, arguments);
        let parts = [
            b"User ",
            user,
            b" has no permissions to access the '",
            &object,
            what,
        ];
        parts.concat()
    }

    /// Why EXEC does not run a command that was allowed when it was queued.
    pub fn reason_in_exec(&self) -> &'static str {
        match self.reason {
            Reason::Command => "no permission to execute the command or subcommand",
            Reason::Key => "no permission to touch the specified keys",
            Reason::Channel => {
                "no permission to access one of the channels used as arguments to the command"
            }
            Reason::Auth => "no permission",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quoin_data::command::resolve;

    fn check(rules: &str, line: &str) -> Result<(), Denial> {
        let arguments: Vec<Bytes> = line.split(' ').map(|word| word.to_owned().into()).collect();
        let row = resolve(&arguments).ok().unwrap();
        Definition::of(rules).check(row, &arguments)
    }

    fn denied(reason: Reason, position: usize) -> Result<(), Denial> {
        Err(Denial { reason, position })
    }

    #[test]
    fn one_selector_has_to_allow_everything() {
        let rules = "~a +get (~b +set)";
        assert_eq!(check(rules, "GET a"), Ok(()));
        assert_eq!(check(rules, "SET b 1"), Ok(()));
        assert_eq!(check(rules, "GET b"), denied(Reason::Key, 1));
        assert_eq!(check(rules, "SET a 1"), denied(Reason::Key, 1));
        assert_eq!(check(rules, "DEL a"), denied(Reason::Command, 0));
        // If no selector allows several keys, this key is named.
        assert_eq!(
            check("~a +mget (~a ~b +mget)", "MGET a b c"),
            denied(Reason::Key, 3)
        );
    }

    #[test]
    fn commands_categories_and_first_arguments() {
        assert_eq!(check("+@read -get", "STRLEN a"), denied(Reason::Key, 1));
        assert_eq!(check("+@read -get", "GET a"), denied(Reason::Command, 0));
        assert_eq!(check("+config|get", "CONFIG GET a"), Ok(()));
        assert_eq!(
            check("+config -config|set", "CONFIG SET a b"),
            denied(Reason::Command, 0)
        );
        assert_eq!(check("+select|0", "SELECT 0"), Ok(()));
        assert_eq!(check("+select|0", "SELECT 1"), denied(Reason::Command, 0));
        assert_eq!(check("", "AUTH x"), Ok(()));
        // Quoin's own commands are in the categories, too.
        assert_eq!(check("allkeys +@write", "PQ.PUSH q 1 a"), Ok(()));
        assert_eq!(
            check("allkeys +@read", "PQ.PUSH q 1 a"),
            denied(Reason::Command, 0)
        );
    }
}
