//! The row of a command, which holds everything that is known about it. Also ACL categories.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use quoin_resp::reply::Reply;

use crate::command::flags::Flags;
use crate::command::grammar::Argument;
use crate::command::key_specs::{KeyPlace, KeySpec};
use crate::command::plan::PlanFunction;
use crate::command::waits::{PinFunction, WaitFunction};
use crate::error::CommandError;
use crate::unit::AnyUnit;
use crate::unit::context::{Environment, ReadContext, WriteContext};

/// Redis's command groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Keys of any type.
    Generic,
    /// Strings.
    String,
    /// Bits of strings.
    Bitmap,
    /// HyperLogLogs, which are strings.
    HyperLogLog,
    /// Hashes.
    Hash,
    /// Sets.
    Set,
    /// Lists.
    List,
    /// Sorted sets.
    SortedSet,
    /// Geospatial positions in sorted sets.
    Geo,
    /// Streams.
    Stream,
    /// Priority queues, which Redis does not have.
    PriorityQueue,
    /// Task queues, which Redis does not have.
    TaskQueue,
    /// Queues of all types, which Redis has no commands for.
    Queue,
    /// Publish and subscribe.
    Pubsub,
    /// The client's connection.
    Connection,
    /// The server.
    Server,
    /// Scripts and functions.
    Scripting,
    /// MULTI and related commands.
    Transactions,
    /// Redis Cluster. Quoin does not take part in one.
    Cluster,
    /// Redis Sentinel. On the Sentinel port only.
    Sentinel,
}

impl Group {
    /// The name in COMMAND DOCS.
    pub fn name(self) -> &'static str {
        match self {
            Group::Generic => "generic",
            Group::String => "string",
            Group::Bitmap => "bitmap",
            Group::HyperLogLog => "hyperloglog",
            Group::Hash => "hash",
            Group::Set => "set",
            Group::List => "list",
            Group::SortedSet => "sorted-set",
            Group::Geo => "geo",
            Group::Stream => "stream",
            Group::PriorityQueue => "priority-queue",
            Group::TaskQueue => "task-queue",
            Group::Queue => "queue",
            Group::Pubsub => "pubsub",
            Group::Connection => "connection",
            Group::Server => "server",
            Group::Scripting => "scripting",
            Group::Transactions => "transactions",
            Group::Cluster => "cluster",
            Group::Sentinel => "sentinel",
        }
    }
}

/// Commands that the server executes itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is the command of that name
pub enum ConnectionCommand {
    Acl,
    Auth,
    Bgrewriteaof,
    Bgsave,
    Client,
    Cluster,
    Config,
    Debug,
    Discard,
    Exec,
    FunctionStats,
    Hello,
    Info,
    Lastsave,
    Latency,
    Lolwut,
    MemoryStats,
    Migrate,
    Monitor,
    Multi,
    Psubscribe,
    Pubsub,
    Punsubscribe,
    QueueTop,
    Quit,
    Reset,
    Role,
    Save,
    Select,
    Sentinel,
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

/// The future of a handler. It resolves to the reply.
pub type HandlerFuture<'c> = Pin<Box<dyn Future<Output = Result<Reply, CommandError>> + 'c>>;

/// Handler of a read-only command. Its context cannot write.
pub type ReadHandler = for<'c> fn(&'c ReadContext<'c>, &'c [Bytes]) -> HandlerFuture<'c>;

/// Handler of a command that writes. If it fails, its writes are undone.
pub type WriteHandler = for<'c> fn(&'c WriteContext<'c>, &'c [Bytes]) -> HandlerFuture<'c>;

/// Handler of a command that calls others, in its client's database. If it fails, writes that it has not undone itself
/// stay, unless the error ends the transaction.
pub type ScriptHandler = for<'c> fn(AnyUnit<'c>, u32, &'c [Bytes]) -> HandlerFuture<'c>;

/// The replies to the first of several commands executed as one; at least one reply.
pub type CoalescedFuture<'c> = Pin<Box<dyn Future<Output = Result<Vec<Reply>, CommandError>> + 'c>>;

/// Handler of several commands on one key, given the arguments of each. If it fails, its writes are undone and the
/// commands are executed one by one, so it need not say which command failed.
pub type CoalescedHandler =
    for<'c> fn(&'c WriteContext<'c>, &'c [&'c [Bytes]]) -> CoalescedFuture<'c>;

/// How consecutive commands of one kind on one key are coalesced: executed as one.
#[derive(Clone, Copy)]
pub struct Coalescing {
    /// Whether a command with these arguments may be coalesced.
    pub accepts: fn(&[Bytes]) -> bool,
    /// Whether two commands with these arguments, both of which are accepted, may be coalesced.
    pub are_alike: fn(&[Bytes], &[Bytes]) -> bool,
    /// The handler.
    pub run: CoalescedHandler,
}

/// Whether two commands have the same key as their first argument.
pub fn have_one_key(one: &[Bytes], other: &[Bytes]) -> bool {
    one.get(1) == other.get(1)
}

/// Handler of a command that needs neither data nor a connection.
pub type PureHandler = fn(&Environment, &[Bytes]) -> Result<Reply, CommandError>;

/// The handler of a command.
#[derive(Clone, Copy)]
pub enum Handler {
    /// Replies immediately.
    Pure(PureHandler),
    /// Runs on a snapshot and cannot write.
    Read(ReadHandler),
    /// Runs in a transaction.
    Write(WriteHandler),
    /// Runs other commands, in a transaction or on a snapshot.
    Script(ScriptHandler),
    /// Executed by the server.
    Connection(ConnectionCommand),
    /// None. The command only groups subcommands, which have their own handlers.
    Container,
}

/// One command or subcommand.
///
/// Rows are built with [`Row::new`] and the methods below. Each family's module holds its rows; [`crate::table`]
/// collects and numbers them.
#[derive(Clone, Copy)]
pub struct Row {
    /// Its position in [`crate::table::all`].
    pub id: usize,
    /// Its name in lower case: `lpush`, or `client|kill` for a subcommand.
    pub name: &'static str,
    /// Number of arguments, including the name; negative for a minimum.
    pub arity: i32,
    /// The Redis version that introduced it, or Quoin's if Redis does not have it.
    pub since: &'static str,
    /// Its group.
    pub group: Group,
    /// Its handler.
    pub handler: Handler,
    /// Its flags.
    pub flags: Flags,
    /// One line on what it does, from Redis's documentation.
    pub summary: &'static str,
    /// Its cost in Quoin, which may differ from Redis's.
    pub complexity: &'static str,
    /// The positions of its keys, and how it uses them.
    pub keys: &'static [KeySpec],
    /// The ACL categories that are not implied by its flags.
    pub categories: &'static [&'static str],
    /// Redis's hints for clients.
    pub tips: &'static [&'static str],
    /// Versions of Redis that changed it, and how.
    pub history: &'static [(&'static str, &'static str)],
    /// The version of Redis that deprecated it, and what replaces it.
    pub deprecated: Option<(&'static str, &'static str)>,
    /// Whether it is for Redis's internal use.
    pub is_system: bool,
    /// The grammar of its arguments.
    pub arguments: &'static [Argument],
    /// Its subcommands.
    pub subcommands: &'static [Row],
    /// Returns what it will read and pop, if more is known than its keys.
    pub plan: Option<PlanFunction>,
    /// Returns what it waits for when it finds nothing, if it blocks.
    pub waits: Option<WaitFunction>,
    /// Returns the arguments to use while it waits.
    pub pins: Option<PinFunction>,
    /// How several such commands are executed as one, if that is cheaper.
    pub coalescing: Option<Coalescing>,
}

impl Row {
    /// A constant-time command. The kind of its handler sets a flag.
    pub const fn new(
        name: &'static str,
        arity: i32,
        since: &'static str,
        group: Group,
        handler: Handler,
    ) -> Self {
        let flags = match handler {
            Handler::Read(_) => Flags::READONLY,
            Handler::Write(_) => Flags::WRITE,
            Handler::Pure(_) | Handler::Script(_) | Handler::Connection(_) | Handler::Container => {
                Flags::NONE
            }
        };
        Self {
            id: 0,
            name,
            arity,
            since,
            group,
            handler,
            flags,
            summary: "",
            complexity: "O(1)",
            keys: &[],
            categories: &[],
            tips: &[],
            history: &[],
            deprecated: None,
            is_system: false,
            arguments: &[],
            subcommands: &[],
            plan: None,
            waits: None,
            pins: None,
            coalescing: None,
        }
    }

    /// A command that only groups subcommands.
    pub const fn container(
        name: &'static str,
        since: &'static str,
        group: Group,
        subcommands: &'static [Row],
    ) -> Self {
        Self::new(name, -2, since, group, Handler::Container)
            .complexity("Depends on subcommand.")
            .subcommands(subcommands)
    }

    /// A HELP subcommand.
    pub const fn help(
        name: &'static str,
        since: &'static str,
        group: Group,
        handler: Handler,
    ) -> Self {
        Self::new(name, 2, since, group, handler)
            .summary("Returns helpful text about the different subcommands.")
            .flags(Flags::LOADING.and(Flags::STALE))
    }

    /// Whether it can only shrink the data: it only removes from its keys, or it has no keys and removes everything of
    /// some kind.
    pub fn only_removes(&self) -> bool {
        match self.keys {
            [] => self.flags.contains(Flags::REMOVES),
            _ if self.flags.contains(Flags::ADDS) => false,
            keys => keys.iter().all(|key| {
                key.flags.contains(&"delete")
                    && !key.flags.contains(&"update")
                    && !key.flags.contains(&"insert")
            }),
        }
    }

    /// Adds flags.
    pub const fn flags(self, flags: Flags) -> Self {
        Self {
            flags: self.flags.and(flags),
            ..self
        }
    }

    /// Makes it appear as a read: it only ever stores a value in another form.
    pub const fn shown_as_read(self) -> Self {
        Self {
            flags: Flags::READONLY,
            ..self
        }
    }

    /// Describes it in one line.
    pub const fn summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// Sets its cost, if it is not constant.
    pub const fn complexity(self, complexity: &'static str) -> Self {
        Self { complexity, ..self }
    }

    /// Sets its key specifications.
    pub const fn keys(self, keys: &'static [KeySpec]) -> Self {
        Self { keys, ..self }
    }

    /// Sets the ACL categories that are not implied by its flags.
    pub const fn categories(self, categories: &'static [&'static str]) -> Self {
        Self { categories, ..self }
    }

    /// Sets hints for clients.
    pub const fn tips(self, tips: &'static [&'static str]) -> Self {
        Self { tips, ..self }
    }

    /// Lists the versions of Redis that changed it.
    pub const fn history(self, history: &'static [(&'static str, &'static str)]) -> Self {
        Self { history, ..self }
    }

    /// Sets the version of Redis that deprecated it, and its replacement.
    pub const fn deprecated(self, since: &'static str, replaced_by: &'static str) -> Self {
        Self {
            deprecated: Some((since, replaced_by)),
            ..self
        }
    }

    /// Marks it as a command for Redis's internal use.
    pub const fn system(self) -> Self {
        Self {
            is_system: true,
            ..self
        }
    }

    /// Describes its arguments.
    pub const fn arguments(self, arguments: &'static [Argument]) -> Self {
        Self { arguments, ..self }
    }

    /// Sets its subcommands.
    pub const fn subcommands(self, subcommands: &'static [Row]) -> Self {
        Self {
            subcommands,
            ..self
        }
    }

    /// Sets the function that returns what it will read and pop, if more is known than its keys.
    pub const fn plan(self, plan: PlanFunction) -> Self {
        Self {
            plan: Some(plan),
            ..self
        }
    }

    /// Sets the function that returns what it waits for when it finds nothing.
    pub const fn waits(self, waits: WaitFunction) -> Self {
        Self {
            waits: Some(waits),
            ..self
        }
    }

    /// Sets the function that returns its arguments while it waits.
    pub const fn pins(self, pins: PinFunction) -> Self {
        Self {
            pins: Some(pins),
            ..self
        }
    }

    /// Sets how several such commands are executed as one.
    pub const fn coalescing(self, coalescing: Coalescing) -> Self {
        Self {
            coalescing: Some(coalescing),
            ..self
        }
    }

    /// Whether it accepts `count` arguments, including the name.
    pub fn accepts(&self, count: usize) -> bool {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let arity = i64::from(self.arity);
        if arity >= 0 {
            count == arity
        } else {
            count >= -arity
        }
    }

    /// The name of a subcommand within its container; otherwise the whole name.
    pub fn own_name(&self) -> &'static str {
        self.name.split_once('|').map_or(self.name, |(_, own)| own)
    }

    /// Whether it is a subcommand.
    pub fn is_subcommand(&self) -> bool {
        self.name.contains('|')
    }

    /// Whether any of its arguments are keys.
    pub fn has_keys(&self) -> bool {
        self.keys.iter().any(KeySpec::is_key)
    }

    /// Whether the values of its keys name further keys (SORT).
    pub fn names_keys_by_values(&self) -> bool {
        let is_such = |spec: &KeySpec| spec.place == KeyPlace::NamedByElements;
        self.keys.iter().any(is_such)
    }

    /// The positions of the keys in `arguments`; empty if the arguments do not match.
    pub fn key_indexes(&self, arguments: &[Bytes]) -> Vec<usize> {
        let mut all = Vec::new();
        for spec in self.keys.iter().filter(|spec| spec.is_key()) {
            match spec.indexes(arguments) {
                Some(indexes) => all.extend(indexes),
                None => return Vec::new(),
            }
        }
        all
    }

    /// The keys among `arguments`, as far as they match.
    pub fn keys_in<'a>(&self, arguments: &'a [Bytes]) -> impl Iterator<Item = &'a Bytes> {
        let specs = self.keys.iter().filter(|spec| spec.is_key());
        let indexes = specs.filter_map(|spec| spec.indexes(arguments)).flatten();
        indexes.filter_map(|at| arguments.get(at))
    }

    /// The names of its flags, in the order of COMMAND INFO.
    pub fn flag_names(&self) -> impl Iterator<Item = &'static str> {
        let is_at_fixed_place = |spec: &KeySpec| matches!(spec.place, KeyPlace::Range { .. });
        let implied = match self.keys.iter().all(is_at_fixed_place) {
            true => Flags::NONE,
            false => Flags::MOVABLEKEYS,
        };
        self.flags.and(implied).names()
    }
}

/// Turns an `async fn(&ReadContext, &[Bytes]) -> Result<Reply, CommandError>` into a handler.
#[macro_export]
macro_rules! read_handler {
    ($function:path) => {
        $crate::command::row::Handler::Read(|context, arguments| {
            Box::pin($function(context, arguments))
        })
    };
}

/// Turns an `async fn(&WriteContext, &[Bytes]) -> Result<Reply, CommandError>` into a handler.
#[macro_export]
macro_rules! write_handler {
    ($function:path) => {
        $crate::command::row::Handler::Write(|context, arguments| {
            Box::pin($function(context, arguments))
        })
    };
}

/// Turns an `async fn(AnyUnit, u32, &[Bytes]) -> Result<Reply, CommandError>` into a handler.
#[macro_export]
macro_rules! script_handler {
    ($function:path) => {
        $crate::command::row::Handler::Script(|unit, database, arguments| {
            Box::pin($function(unit, database, arguments))
        })
    };
}

/// Turns an `async fn(&WriteContext, &[&[Bytes]]) -> Result<Vec<Reply>, CommandError>` into a [`Coalescing`], given the
/// function that accepts a command's arguments.
#[macro_export]
macro_rules! coalescing {
    ($accepts:path, $function:path) => {
        $crate::coalescing!($accepts, $crate::command::row::have_one_key, $function)
    };
    ($accepts:path, $are_alike:path, $function:path) => {
        $crate::command::row::Coalescing {
            accepts: $accepts,
            are_alike: $are_alike,
            run: |context, arguments| Box::pin($function(context, arguments)),
        }
    };
}

/// Redis's ACL categories in its order, and those of Quoin's own types.
pub const CATEGORIES: &[&str] = &[
    "@keyspace",
    "@read",
    "@write",
    "@set",
    "@sortedset",
    "@list",
    "@hash",
    "@string",
    "@bitmap",
    "@hyperloglog",
    "@geo",
    "@stream",
    "@pubsub",
    "@admin",
    "@fast",
    "@slow",
    "@blocking",
    "@dangerous",
    "@connection",
    "@transaction",
    "@scripting",
    "@pqueue",
    "@taskqueue",
];

/// The ACL categories of a command: those implied by its flags (as in Redis) and those in its row. In the order of
/// [`CATEGORIES`].
pub fn categories(row: &Row) -> impl Iterator<Item = &'static str> {
    let is_named = |category: &str| row.categories.contains(&category);
    let is_implied = move |category: &str| match category {
        "@read" => row.flags.contains(Flags::READONLY) && !is_named("@scripting"),
        "@write" => row.flags.contains(Flags::WRITE),
        "@admin" | "@dangerous" => row.flags.contains(Flags::ADMIN),
        "@pubsub" => row.flags.contains(Flags::PUBSUB),
        "@fast" => row.flags.contains(Flags::FAST),
        "@slow" => !row.flags.contains(Flags::FAST),
        "@blocking" => row.flags.contains(Flags::BLOCKING),
        _ => false,
    };
    let all = CATEGORIES.iter().copied();
    all.filter(move |category| is_implied(category) || is_named(category))
}
