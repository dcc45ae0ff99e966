//! The row of a command: all that is known of it, said once.
//!
//! ACL categories.

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
    /// Places in sorted sets.
    Geo,
    /// Streams.
    Stream,
    /// Priority queues, which Redis does not have.
    PriorityQueue,
    /// Task queues, which Redis does not have.
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
    /// Redis Cluster, which Quoin is not part of.
    Cluster,
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
            Group::Pubsub => "pubsub",
            Group::Connection => "connection",
            Group::Server => "server",
            Group::Scripting => "scripting",
            Group::Transactions => "transactions",
            Group::Cluster => "cluster",
        }
    }
}

/// Commands that the server carries out itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is the command of that name
pub enum ConnectionCommand {
    Acl,
    Auth,
    Bgrewriteaof,
    Bgsave,
    Client,
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

/// Code of a command that runs others, in the database of its client. Its error undoes what it has
/// not undone itself only where the transaction ends with it.
pub type ScriptHandler = for<'c> fn(AnyUnit<'c>, u32, &'c [Bytes]) -> HandlerFuture<'c>;

/// What a series returns: the replies of its first commands, at least of one.
pub type SeriesFuture<'c> = Pin<Box<dyn Future<Output = Result<Vec<Reply>, CommandError>> + 'c>>;

/// Code of a series of commands on one key, given the arguments of each. Where it fails, what it has
/// written is undone, and the commands run one by one. So it need not say which of them fails.
pub type SeriesHandler = for<'c> fn(&'c WriteContext<'c>, &'c [&'c [Bytes]]) -> SeriesFuture<'c>;

/// How commands of one kind that follow each other on one key run as one.
#[derive(Clone, Copy)]
pub struct Series {
    /// Whether a command with these arguments may be part of it.
    pub accepts: fn(&[Bytes]) -> bool,
    /// Whether commands with these arguments, which both are accepted, may be part of one.
    pub are_alike: fn(&[Bytes], &[Bytes]) -> bool,
    /// Its code.
    pub run: SeriesHandler,
}

/// Whether the keys of two commands, their first arguments, are the same.
pub fn have_one_key(one: &[Bytes], other: &[Bytes]) -> bool {
    one.get(1) == other.get(1)
}

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
    /// Runs other commands, in a transaction or on a snapshot.
    Script(ScriptHandler),
    /// Carried out by the server.
    Connection(ConnectionCommand),
    /// None: the command is only a name for its subcommands, which have their own.
    Container,
}

/// One command or subcommand.
///
/// Rows are written with [`Row::new`] and the methods that say more: the rows of a family stand in
/// its module, [`crate::table`] gathers and numbers them.
#[derive(Clone, Copy)]
pub struct Row {
    /// Its place in [`crate::table::all`].
    pub id: usize,
    /// Its name in lower case: `lpush`, and of a subcommand `client|kill`.
    pub name: &'static str,
    /// Number of arguments, the names included; negative: at least so many.
    pub arity: i32,
    /// The Redis version that introduced it, or Quoin's where Redis does not have it.
    pub since: &'static str,
    /// Its group.
    pub group: Group,
    /// Its code.
    pub handler: Handler,
    /// Its flags.
    pub flags: Flags,
    /// One line on what it does, from Redis's documentation.
    pub summary: &'static str,
    /// Its cost here, which need not be that of Redis.
    pub complexity: &'static str,
    /// Where its keys stand, and what it does to them.
    pub keys: &'static [KeySpec],
    /// The ACL categories that its flags do not imply.
    pub categories: &'static [&'static str],
    /// Redis's hints for clients.
    pub tips: &'static [&'static str],
    /// Versions of Redis that changed it, and how.
    pub history: &'static [(&'static str, &'static str)],
    /// The version of Redis that deprecated it, and what replaces it.
    pub deprecated: Option<(&'static str, &'static str)>,
    /// Whether it is for Redis's own use.
    pub is_system: bool,
    /// The grammar of its arguments.
    pub arguments: &'static [Argument],
    /// Its subcommands.
    pub subcommands: &'static [Row],
    /// Tells what it will read and pop, if more is known than its keys.
    pub plan: Option<PlanFunction>,
    /// Tells what it waits for when it finds nothing, if it blocks.
    pub waits: Option<WaitFunction>,
    /// Fixes its arguments when it begins to wait.
    pub pins: Option<PinFunction>,
    /// How several of it run as one, if that is cheaper.
    pub series: Option<Series>,
}

impl Row {
    /// A command that takes constant time; what its handler may do is among its flags.
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
            series: None,
        }
    }

    /// A command that is only a name for its subcommands.
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

    /// Whether it can only make the data less: all that it does to keys is to remove, or it has no keys and
    /// removes all there is of something.
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

    /// Shows it as a command that only reads: what it writes is only another form of the value.
    pub const fn shown_as_read(self) -> Self {
        Self {
            flags: Flags::READONLY,
            ..self
        }
    }

    /// Says in a line what it does.
    pub const fn summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// Says what it costs, where that is not constant.
    pub const fn complexity(self, complexity: &'static str) -> Self {
        Self { complexity, ..self }
    }

    /// Says where its keys stand.
    pub const fn keys(self, keys: &'static [KeySpec]) -> Self {
        Self { keys, ..self }
    }

    /// Replaces the ACL categories that its flags do not imply.
    pub const fn categories(self, categories: &'static [&'static str]) -> Self {
        Self { categories, ..self }
    }

    /// Gives hints for clients.
    pub const fn tips(self, tips: &'static [&'static str]) -> Self {
        Self { tips, ..self }
    }

    /// Tells which versions of Redis changed it.
    pub const fn history(self, history: &'static [(&'static str, &'static str)]) -> Self {
        Self { history, ..self }
    }

    /// Names the version of Redis that deprecated it, and what replaces it.
    pub const fn deprecated(self, since: &'static str, replaced_by: &'static str) -> Self {
        Self {
            deprecated: Some((since, replaced_by)),
            ..self
        }
    }

    /// Marks it as a command for Redis's own use.
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

    /// Gives it subcommands.
    pub const fn subcommands(self, subcommands: &'static [Row]) -> Self {
        Self {
            subcommands,
            ..self
        }
    }

    /// Says what it will read and pop, if more is known than its keys.
    pub const fn plan(self, plan: PlanFunction) -> Self {
        Self {
            plan: Some(plan),
            ..self
        }
    }

    /// Says what it waits for when it finds nothing.
    pub const fn waits(self, waits: WaitFunction) -> Self {
        Self {
            waits: Some(waits),
            ..self
        }
    }

    /// Says what its arguments are once it waits.
    pub const fn pins(self, pins: PinFunction) -> Self {
        Self {
            pins: Some(pins),
            ..self
        }
    }

    /// Says how several of it run as one.
    pub const fn series(self, series: Series) -> Self {
        Self {
            series: Some(series),
            ..self
        }
    }

    /// Whether `count` arguments (the names included) fit.
    pub fn accepts(&self, count: usize) -> bool {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let arity = i64::from(self.arity);
        if arity >= 0 {
            count == arity
        } else {
            count >= -arity
        }
    }

    /// Of a subcommand its name within its container, else its name.
    pub fn own_name(&self) -> &'static str {
        self.name.split_once('|').map_or(self.name, |(_, own)| own)
    }

    /// Whether it is a subcommand.
    pub fn is_subcommand(&self) -> bool {
        self.name.contains('|')
    }

    /// Whether arguments of it are keys.
    pub fn has_keys(&self) -> bool {
        self.keys.iter().any(KeySpec::is_key)
    }

    /// Whether the values of its keys name further keys (SORT).
    pub fn names_keys_by_values(&self) -> bool {
        let is_such = |spec: &KeySpec| spec.place == KeyPlace::NamedByElements;
        self.keys.iter().any(is_such)
    }

    /// The positions of the keys in `arguments`; empty where the arguments do not fit.
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

    /// The names of its flags, in Redis's order.
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

/// Turns an `async fn(&WriteContext, &[&[Bytes]]) -> Result<Vec<Reply>, CommandError>` into a series
/// of the commands whose arguments a function accepts.
#[macro_export]
macro_rules! series {
    ($accepts:path, $function:path) => {
        $crate::series!($accepts, $crate::command::row::have_one_key, $function)
    };
    ($accepts:path, $are_alike:path, $function:path) => {
        $crate::command::row::Series {
            accepts: $accepts,
            are_alike: $are_alike,
            run: |context, arguments| Box::pin($function(context, arguments)),
        }
    };
}

/// Redis's ACL categories, in its order, and those of the types that only Quoin has.
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

/// The ACL categories of a command: those that its flags imply, as Redis derives them, and those
/// that its row names. In the order of [`CATEGORIES`].
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
