//! The declarative row of a command.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;

use super::arguments::is_word;
use super::plan::PlanFunction;
use super::waits::WaitFunction;
use crate::error::CommandError;
use crate::reply::Reply;
use crate::types::{Environment, ReadContext, WriteContext};

/// A set of Redis's command flags, as COMMAND INFO names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags(u32);

macro_rules! flags {
    ($($(#[$document:meta])* $name:ident = $bit:literal, $text:literal;)*) => {
        impl Flags {
            /// No flag.
            pub const NONE: Flags = Flags(0);
            $($(#[$document])* pub const $name: Flags = Flags(1 << $bit);)*

            const NAMES: &'static [(Flags, &'static str)] = &[$((Flags::$name, $text)),*];
        }
    };
}

// In the order in which COMMAND INFO lists them.
flags! {
    /// Changes data.
    WRITE = 0, "write";
    /// Only reads data.
    READONLY = 1, "readonly";
    /// Needs memory, and would be refused where there is none.
    DENYOOM = 2, "denyoom";
    /// For administrators.
    ADMIN = 3, "admin";
    /// Concerns Pub/Sub.
    PUBSUB = 4, "pubsub";
    /// Not for scripts.
    NOSCRIPT = 5, "noscript";
    /// May block the client.
    BLOCKING = 6, "blocking";
    /// Allowed while a server loads its data.
    LOADING = 7, "loading";
    /// Allowed on a stale replica.
    STALE = 8, "stale";
    /// Not shown to MONITOR.
    SKIP_MONITOR = 9, "skip_monitor";
    /// Not in the slow log.
    SKIP_SLOWLOG = 10, "skip_slowlog";
    /// Takes constant or logarithmic time.
    FAST = 12, "fast";
    /// Allowed before AUTH.
    NO_AUTH = 13, "no_auth";
    /// Not while data is loaded in the background.
    NO_ASYNC_LOADING = 14, "no_async_loading";
    /// Not within MULTI.
    NO_MULTI = 19, "no_multi";
    /// Keys stand where the first keys do not tell.
    MOVABLEKEYS = 18, "movablekeys";
    /// Allowed while a script is busy.
    ALLOW_BUSY = 20, "allow_busy";
}

impl Flags {
    /// Publishes: held back by CLIENT PAUSE WRITE as commands that write. Redis does not list it.
    pub const MAY_REPLICATE: Flags = Flags(1 << 24);

    /// Allowed for clients that have subscribed and speak RESP2. Redis does not list it.
    pub const FOR_SUBSCRIBERS: Flags = Flags(1 << 25);

    /// Both sets together.
    pub const fn and(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Whether all of `other` is in here.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags' names in COMMAND INFO's order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES
            .iter()
            .filter(move |(flag, _)| self.contains(*flag))
            .map(|(_, name)| *name)
    }
}

/// Where a command's keys stand among its arguments (the command's name is argument 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPositions {
    /// No keys.
    None,
    /// From `first` to `last` (negative: from the end), every `step`.
    Range {
        /// First key.
        first: i32,
        /// Last key; −1 is the last argument.
        last: i32,
        /// Distance of keys.
        step: i32,
    },
    /// A number of keys at `count`, and the keys behind it.
    Counted {
        /// Position of the number.
        count: usize,
    },
    /// A destination key at 1, a number of keys at 2, and the keys behind it.
    DestinationAndCounted,
    /// None, but channels from 1 to `last`, which clients of a Redis Cluster route by as by keys.
    ShardChannels {
        /// The last channel; −1 is the last argument.
        last: i32,
    },
    /// SORT: a key at 1, and the one behind the last STORE.
    Sort,
}

impl KeyPositions {
    /// The first argument is the one key.
    pub const FIRST: KeyPositions = KeyPositions::Range {
        first: 1,
        last: 1,
        step: 1,
    };
    /// All arguments are keys but the last, which is a timeout.
    pub const ALL_BUT_LAST: KeyPositions = KeyPositions::Range {
        first: 1,
        last: -2,
        step: 1,
    };
    /// The first two arguments are keys.
    pub const FIRST_TWO: KeyPositions = KeyPositions::Range {
        first: 1,
        last: 2,
        step: 1,
    };
}

/// What keys a command touches and how, for COMMAND's key specifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    /// Reads values.
    Read,
    /// Reads and changes values.
    ReadWrite,
    /// Overwrites values without looking at them.
    Overwrite,
    /// Deletes keys without looking at values.
    Remove,
}

/// Redis's command groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Keys of any type.
    Generic,
    /// Lists.
    List,
    /// Sorted sets.
    SortedSet,
    /// Priority queues, which Redis has not.
    PriorityQueue,
    /// Task queues, which Redis has not.
    TaskQueue,
    /// Publish and subscribe.
    Pubsub,
    /// The client's connection.
    Connection,
    /// The server.
    Server,
    /// Scripts and functions.
    Scripting,
    /// MULTI and what belongs to it.
    Transactions,
}

impl Group {
    /// The name in COMMAND DOCS.
    pub fn name(self) -> &'static str {
        match self {
            Group::Generic => "generic",
            Group::List => "list",
            Group::SortedSet => "sorted-set",
            Group::PriorityQueue => "priority-queue",
            Group::TaskQueue => "task-queue",
            Group::Pubsub => "pubsub",
            Group::Connection => "connection",
            Group::Server => "server",
            Group::Scripting => "scripting",
            Group::Transactions => "transactions",
        }
    }
}

/// Commands that the server carries out itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is the command of that name
pub enum ConnectionCommand {
    Acl,
    Auth,
    Bgsave,
    Client,
    Command,
    Config,
    Debug,
    Discard,
    Exec,
    Function,
    Hello,
    Info,
    Lastsave,
    Latency,
    Lolwut,
    Multi,
    Psubscribe,
    Pubsub,
    Punsubscribe,
    Quit,
    Reset,
    Save,
    Select,
    Shutdown,
    Slowlog,
    Ssubscribe,
    Subscribe,
    Sunsubscribe,
    Unsubscribe,
    Unwatch,
    Wait,
    Waitaof,
    Watch,
}

/// What a command's code returns: its reply, once its reads are there.
pub type HandlerFuture<'c> = Pin<Box<dyn Future<Output = Result<Reply, CommandError>> + 'c>>;

/// Code of a command that only reads: it is given nothing that can write.
pub type ReadHandler = for<'c> fn(&'c ReadContext<'c>, &'c [Bytes]) -> HandlerFuture<'c>;

/// Code of a command that writes. Where it fails, what it has written is undone.
pub type WriteHandler = for<'c> fn(&'c WriteContext<'c>, &'c [Bytes]) -> HandlerFuture<'c>;

/// Code of a command that needs neither data nor a connection.
pub type PureHandler = fn(&Environment, &[Bytes]) -> Result<Reply, CommandError>;

/// A command's code.
#[derive(Clone, Copy)]
pub enum Handler {
    /// Runs at once.
    Pure(PureHandler),
    /// Runs on a snapshot; it is given nothing that could write.
    Read(ReadHandler),
    /// Runs in a transaction.
    Write(WriteHandler),
    /// Carried out by the server.
    Connection(ConnectionCommand),
}

/// One command.
#[derive(Clone, Copy)]
pub struct Row {
    /// Its name in lower case; of a subcommand only its own.
    pub name: &'static str,
    /// Number of arguments, the name included; negative: at least so many.
    pub arity: i32,
    /// Its flags.
    pub flags: Flags,
    /// Where its keys stand.
    pub keys: KeyPositions,
    /// What it does to them.
    pub key_use: KeyUse,
    /// The Redis version that introduced it, or Quoin's where Redis has not got it.
    pub since: &'static str,
    /// Its group.
    pub group: Group,
    /// One line on what it does, from Redis's documentation.
    pub summary: &'static str,
    /// Its cost here, which need not be Redis's.
    pub complexity: &'static str,
    /// Its code; of a command with subcommands, theirs too.
    pub handler: Handler,
    /// Its subcommands, as Redis has them.
    pub subcommands: &'static [Row],
    /// Tells what it will read and pop, if more is known than its keys.
    pub plan: Option<PlanFunction>,
    /// Tells what it waits for when it finds nothing, if it blocks.
    pub waits: Option<WaitFunction>,
}

impl Row {
    /// Whether `count` arguments (the name included) fit.
    pub fn accepts(&self, count: usize) -> bool {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let arity = i64::from(self.arity);
        if arity >= 0 {
            count == arity
        } else {
            count >= -arity
        }
    }

    /// The subcommand that the arguments name.
    pub fn subcommand(&self, arguments: &[Bytes]) -> Option<&'static Row> {
        let name = arguments.get(1)?;
        self.subcommands
            .iter()
            .find(|row| row.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// The positions of the keys in `arguments`; empty where the arguments do not fit.
    pub fn key_indexes(&self, arguments: &[Bytes]) -> Vec<usize> {
        match self.keys {
            KeyPositions::None | KeyPositions::ShardChannels { .. } => Vec::new(),
            KeyPositions::Range { first, last, step } => {
                let count = i64::try_from(arguments.len()).unwrap_or(i64::MAX);
                let last = if last < 0 {
                    count + i64::from(last)
                } else {
                    i64::from(last)
                };
                let step = usize::try_from(step).unwrap_or(1).max(1);
                (i64::from(first)..=last.min(count - 1))
                    .step_by(step)
                    .filter_map(|index| usize::try_from(index).ok())
                    .collect()
            }
            KeyPositions::Counted { count } => counted_keys(arguments, count),
            KeyPositions::DestinationAndCounted => {
                let sources = counted_keys(arguments, 2);
                if sources.is_empty() {
                    return sources;
                }
                std::iter::once(1).chain(sources).collect()
            }
            KeyPositions::Sort => std::iter::once(1).chain(stored_key(arguments)).collect(),
        }
    }
}

/// The key behind the last STORE of a SORT, found as Redis finds it (`sortGetKeys` in `db.c`),
/// which passes over the arguments of other options, but not over STORE's own.
fn stored_key(arguments: &[Bytes]) -> Option<usize> {
    let mut stored = None;
    let mut at = 2;
    while let Some(word) = arguments.get(at) {
        if is_word(word, "limit") {
            at += 2;
        } else if is_word(word, "get") || is_word(word, "by") {
            at += 1;
        } else if is_word(word, "store") && at + 1 < arguments.len() {
            stored = Some(at + 1);
        }
        at += 1;
    }
    stored
}

fn counted_keys(arguments: &[Bytes], count_at: usize) -> Vec<usize> {
    let count = arguments
        .get(count_at)
        .and_then(|word| std::str::from_utf8(word).ok())
        .and_then(|word| word.parse::<usize>().ok())
        .unwrap_or(0);
    let first = count_at + 1;
    match first.checked_add(count) {
        Some(end) if count > 0 && end <= arguments.len() => (first..end).collect(),
        _ => Vec::new(),
    }
}

/// Turns an `async fn(&ReadContext, &[Bytes]) -> Result<Reply, CommandError>` into a handler.
#[macro_export]
macro_rules! read_handler {
    ($function:path) => {
        $crate::commands::row::Handler::Read(|context, arguments| {
            Box::pin($function(context, arguments))
        })
    };
}

/// Turns an `async fn(&WriteContext, &[Bytes]) -> Result<Reply, CommandError>` into a handler.
#[macro_export]
macro_rules! write_handler {
    ($function:path) => {
        $crate::commands::row::Handler::Write(|context, arguments| {
            Box::pin($function(context, arguments))
        })
    };
}
