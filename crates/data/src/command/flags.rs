//! Command flags: what a command may do and when. Redis and its clients use them.

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

// In the order of COMMAND INFO.
flags! {
    /// Changes data.
    WRITE = 0, "write";
    /// Only reads data.
    READONLY = 1, "readonly";
    /// May add data: refused at `maxmemory` and on a full disk.
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
    /// May be called without keys although it can name some.
    NO_MANDATORY_KEYS = 11, "no_mandatory_keys";
    /// Not while data is loaded in the background.
    NO_ASYNC_LOADING = 14, "no_async_loading";
    /// Not within MULTI.
    NO_MULTI = 19, "no_multi";
    /// The positions of keys depend on the arguments.
    MOVABLEKEYS = 18, "movablekeys";
    /// Allowed while a script is busy.
    ALLOW_BUSY = 20, "allow_busy";
}

impl Flags {
    /// Publishes messages. CLIENT PAUSE WRITE delays it like a write. Redis does not list this flag.
    pub const MAY_REPLICATE: Flags = Flags(1 << 24);

    /// Allowed for RESP2 clients that have subscribed. Redis does not list this flag.
    pub const FOR_SUBSCRIBERS: Flags = Flags(1 << 25);

    /// Runs on a snapshot, although its handler could write. Redis does not have this flag.
    pub const ON_SNAPSHOT: Flags = Flags(1 << 26);

    /// Reads so much that it takes no part in conflict detection, even in a script. Redis does not have this flag.
    pub const AT_SNAPSHOT: Flags = Flags(1 << 27);

    /// Removes data without naming keys. Redis does not list this flag.
    pub const REMOVES: Flags = Flags(1 << 28);
    /// Also adds rows, although its key specification (which is Redis's) only says that it removes.
    pub const ADDS: Flags = Flags(1 << 29);

    /// Also on the Sentinel port (Redis: `CMD_SENTINEL`). Redis does not list this flag.
    pub const SENTINEL: Flags = Flags(1 << 30);

    /// Commands with this flag conflict if they write to one key at the same time, so one server
    /// should run them all (docs/understand/decisions/053-forwarding.md). Redis does not have this
    /// flag.
    pub const CONTENDS: Flags = Flags(1 << 31);

    /// The flags of most connection and server commands: allowed at any time, but not in scripts.
    pub const AT_ANY_TIME: Flags = Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE);

    /// The union of both sets.
    pub const fn and(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Whether `self` contains all flags of `other`.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of the flags, in the order of COMMAND INFO.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES
            .iter()
            .filter(move |(flag, _)| self.contains(*flag))
            .map(|(_, name)| *name)
    }
}
