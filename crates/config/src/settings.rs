//! The types of settings. For those that a running server reads at each command, also the atomic cells that
//! hold them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};

use tracing::level_filters::LevelFilter;

use crate::value::Value;
use quoin_base::events::{EventClasses, EventSwitch};

/// Keys of a database whose names match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeysPattern {
    /// The database's number.
    pub database: u32,
    /// A glob pattern, as in KEYS.
    pub pattern: String,
}

impl KeysPattern {
    /// Whether it has no wildcard, so that it matches one name.
    pub fn is_name(&self) -> bool {
        !self.pattern.contains(['*', '?', '[', '\\'])
    }
}

/// Permissions of a file. 0 leaves them to the process's umask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Permissions(pub u32);

/// FoundationDB's own TLS options. For `None`, FoundationDB uses its environment variables
/// (`FDB_TLS_CERTIFICATE_FILE` and so on) or its defaults.
///
/// Not `Debug`: it holds a password.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct FdbTls {
    /// This server's certificate, with its chain.
    pub certificate_file: Option<PathBuf>,
    /// The key that belongs to it.
    pub key_file: Option<PathBuf>,
    /// Certificates that the cluster's certificates are checked against.
    pub ca_file: Option<PathBuf>,
    /// Conditions for the cluster's certificates.
    pub verify_peers: Option<String>,
    /// The password of an encrypted key.
    pub password: Option<String>,
}

/// Limits for output that waits to be sent to a client. There are no replicas, so their limits have
/// no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutputLimits {
    /// Redis's class `normal`.
    pub normal: OutputLimit,
    /// Redis's class `slave`.
    pub replica: OutputLimit,
    /// Redis's class `pubsub`: clients that are subscribed.
    pub subscriber: OutputLimit,
}

/// A limit on memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryLimit {
    /// A number of bytes. 0 is no limit.
    Bytes(u64),
    /// A percentage of the machine's memory.
    Percent(u8),
}

impl MemoryLimit {
    /// The limit in bytes on a machine with this memory. `None` is no limit.
    pub fn bytes(self, machine_bytes: u64) -> Option<u64> {
        match self {
            MemoryLimit::Bytes(0) => None,
            MemoryLimit::Bytes(bytes) => Some(bytes),
            MemoryLimit::Percent(percent) => Some(machine_bytes / 100 * u64::from(percent)),
        }
    }
}

impl Default for MemoryLimit {
    /// No limit.
    fn default() -> Self {
        MemoryLimit::Bytes(0)
    }
}

impl Value for MemoryLimit {
    fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => percent.parse().ok().map(MemoryLimit::Percent),
            None => text.parse().ok().map(MemoryLimit::Bytes),
        }
    }

    fn render(&self) -> String {
        match self {
            MemoryLimit::Bytes(bytes) => bytes.to_string(),
            MemoryLimit::Percent(percent) => format!("{percent}%"),
        }
    }
}

/// A limit on the bytes that wait for a client. Beyond it the client is disconnected. 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutputLimit {
    /// Above this many bytes, the connection ends at once.
    pub hard_bytes: u64,
    /// Above this many bytes for `soft_s`, the connection ends.
    pub soft_bytes: u64,
    /// Seconds for which the soft limit may be exceeded.
    pub soft_s: u32,
}

impl OutputLimit {
    /// Whether `bytes` exceed the limit (Redis: `checkClientOutputBufferLimits`). `above_soft_since_ms`
    /// is state between calls.
    pub fn is_exceeded(
        &self,
        bytes: u64,
        above_soft_since_ms: &mut Option<i64>,
        now_ms: i64,
    ) -> bool {
        if self.hard_bytes != 0 && bytes >= self.hard_bytes {
            return true;
        }
        if self.soft_bytes == 0 || bytes < self.soft_bytes {
            *above_soft_since_ms = None;
            return false;
        }
        let since_ms = *above_soft_since_ms.get_or_insert(now_ms);
        now_ms.saturating_sub(since_ms) > i64::from(self.soft_s) * 1000
    }
}

/// An enumeration whose variants have names in the settings, in the order in which a refusal lists
/// them.
macro_rules! named {
    ($(#[$about:meta])* pub enum $type:ident {
        $($(#[$variant_about:meta])* $variant:ident = $name:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum $type {
            $($(#[$variant_about])* $variant,)+
        }

        impl $type {
            pub(super) const NAMES: &'static [&'static str] = &[$($name),+];

            /// Its name in the settings.
            pub fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)+
                }
            }
        }

        impl Value for $type {
            fn parse(text: &str) -> Option<Self> {
                match text {
                    $($name => Some($type::$variant),)+
                    _ => None,
                }
            }

            fn render(&self) -> String {
                self.name().to_owned()
            }
        }
    };
}

named! {
    /// Which store holds the data.
    pub enum StoreKind {
        /// In this process, in a folder.
        #[default]
        Embedded = "embedded",
        /// A FoundationDB cluster.
        Fdb = "fdb",
    }
}

named! {
    /// When a commit of the embedded store reaches the disk (Redis: `appendfsync`).
    pub enum Fsync {
        /// Once a second: a crash of the machine may lose the last second.
        EverySec = "everysec",
        /// Before the reply.
        #[default]
        Always = "always",
    }
}

/// Where the dashboard is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DashboardAddress {
    /// Nowhere.
    Off,
    /// On [`Self::BY_DEFAULT`], if that does not let in anyone who could not get in otherwise.
    #[default]
    Auto,
    /// At this address.
    At(SocketAddr),
}

impl DashboardAddress {
    /// The address of [`Self::Auto`].
    pub const BY_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8379);
}

impl Value for DashboardAddress {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "" => Some(Self::Off),
            "auto" => Some(Self::Auto),
            text => text.parse().ok().map(Self::At),
        }
    }

    fn render(&self) -> String {
        match self {
            Self::Off => String::new(),
            Self::Auto => "auto".to_owned(),
            Self::At(address) => address.to_string(),
        }
    }
}

named! {
    /// What clients of the cluster port get as the address of a server.
    pub enum EndpointType {
        /// Its IP address.
        #[default]
        Ip = "ip",
        /// Its host name.
        Hostname = "hostname",
        /// Nothing: clients use the address that they asked at.
        UnknownEndpoint = "unknown-endpoint",
    }
}

named! {
    /// Channels of a user without rules about channels.
    pub enum ChannelsDefault {
        /// All of them.
        AllChannels = "allchannels",
        /// None.
        #[default]
        ResetChannels = "resetchannels",
    }
}

named! {
    /// What happens beyond `maxmemory`. Of Redis's policies, Quoin has only the one that evicts
    /// nothing.
    pub enum EvictionPolicy {
        /// Commands that add data are refused.
        #[default]
        NoEviction = "noeviction",
    }
}

named! {
    /// The form of the log's lines.
    pub enum LogFormat {
        /// For people.
        #[default]
        Text = "text",
        /// A JSON object for each line.
        Json = "json",
    }
}

named! {
    /// The log level: Redis's levels.
    pub enum LogLevel {
        /// Everything, for development.
        Debug = "debug",
        /// Details that are rarely useful.
        Verbose = "verbose",
        /// For production.
        #[default]
        Notice = "notice",
        /// Only warnings and errors.
        Warning = "warning",
        /// No lines.
        Nothing = "nothing",
    }
}

impl LogLevel {
    /// The name of the level `given` at the start, which may also be a level name of the log's lines.
    /// CONFIG SET accepts only Redis's names.
    pub(super) fn name_at_start(given: &str) -> &str {
        match given.to_ascii_lowercase().as_str() {
            "info" => LogLevel::Notice.name(),
            "warn" => LogLevel::Warning.name(),
            _ => given,
        }
    }

    /// The most detailed level of `tracing` that is written.
    pub fn filter(self) -> LevelFilter {
        match self {
            LogLevel::Debug => LevelFilter::TRACE,
            LogLevel::Verbose => LevelFilter::DEBUG,
            LogLevel::Notice => LevelFilter::INFO,
            LogLevel::Warning => LevelFilter::WARN,
            LogLevel::Nothing => LevelFilter::OFF,
        }
    }
}

/// A value with an atomic cell.
pub trait Live: Copy {
    /// The cell.
    type Cell: Default;

    /// The value of a cell. A change of several numbers is not atomic.
    fn load(cell: &Self::Cell) -> Self;
    /// Puts the value into a cell.
    fn store(self, cell: &Self::Cell);
}

macro_rules! live_numbers {
    ($($type:ty: $cell:ty),+) => {$(
        impl Live for $type {
            type Cell = $cell;

            fn load(cell: &$cell) -> Self {
                cell.load(Ordering::Relaxed)
            }

            fn store(self, cell: &$cell) {
                cell.store(self, Ordering::Relaxed);
            }
        }
    )+};
}

live_numbers!(bool: AtomicBool, u32: AtomicU32, u64: AtomicU64, i64: AtomicI64);

impl Live for EventClasses {
    type Cell = EventSwitch;

    fn load(cell: &EventSwitch) -> Self {
        cell.classes()
    }

    fn store(self, cell: &EventSwitch) {
        cell.set(self);
    }
}

impl Live for OutputLimit {
    type Cell = (AtomicU64, AtomicU64, AtomicU32);

    fn load((hard, soft, seconds): &Self::Cell) -> Self {
        OutputLimit {
            hard_bytes: Live::load(hard),
            soft_bytes: Live::load(soft),
            soft_s: Live::load(seconds),
        }
    }

    fn store(self, (hard, soft, seconds): &Self::Cell) {
        Live::store(self.hard_bytes, hard);
        Live::store(self.soft_bytes, soft);
        Live::store(self.soft_s, seconds);
    }
}

impl Live for OutputLimits {
    type Cell = [<OutputLimit as Live>::Cell; 3];

    fn load([normal, replica, subscriber]: &Self::Cell) -> Self {
        OutputLimits {
            normal: Live::load(normal),
            replica: Live::load(replica),
            subscriber: Live::load(subscriber),
        }
    }

    fn store(self, [normal, replica, subscriber]: &Self::Cell) {
        Live::store(self.normal, normal);
        Live::store(self.replica, replica);
        Live::store(self.subscriber, subscriber);
    }
}

/// The bit of a percentage.
const PERCENT: u64 = 1 << 63;

impl Live for MemoryLimit {
    type Cell = AtomicU64;

    fn load(cell: &AtomicU64) -> Self {
        match cell.load(Ordering::Relaxed) {
            bytes if bytes & PERCENT == 0 => MemoryLimit::Bytes(bytes),
            percent => MemoryLimit::Percent(u8::try_from(percent & !PERCENT).unwrap_or(u8::MAX)),
        }
    }

    fn store(self, cell: &AtomicU64) {
        let number = match self {
            MemoryLimit::Bytes(bytes) => bytes & !PERCENT,
            MemoryLimit::Percent(percent) => PERCENT | u64::from(percent),
        };
        cell.store(number, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_come_out_as_they_went_in() {
        for limit in [
            MemoryLimit::Bytes(0),
            MemoryLimit::Bytes(i64::MAX as u64),
            MemoryLimit::Percent(1),
            MemoryLimit::Percent(100),
        ] {
            let cell = AtomicU64::default();
            limit.store(&cell);
            assert_eq!(MemoryLimit::load(&cell), limit);
        }
    }
}
