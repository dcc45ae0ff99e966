//! The types of settings.

use std::path::PathBuf;

use tracing::level_filters::LevelFilter;

use super::value::Value;

/// Keys of a database whose names match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeysPattern {
    /// The database's number.
    pub database: u32,
    /// A glob pattern, as in KEYS.
    pub pattern: String,
}

impl KeysPattern {
    /// Whether it can only match the one key that is called as it is.
    pub fn is_name(&self) -> bool {
        !self.pattern.contains(['*', '?', '[', '\\'])
    }
}

/// Permissions of a file; 0 leaves those of the process's mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Permissions(pub u32);

/// FoundationDB's own TLS options. What is `None`, FoundationDB takes from its environment
/// variables (`FDB_TLS_CERTIFICATE_FILE` and so on) or its defaults.
///
/// Not `Debug`: it holds a password.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct FdbTls {
    /// This server's certificate, with its chain.
    pub certificate_file: Option<PathBuf>,
    /// The key that belongs to it.
    pub key_file: Option<PathBuf>,
    /// Certificates by which the cluster's are judged.
    pub ca_file: Option<PathBuf>,
    /// What the cluster's certificates must fulfil.
    pub verify_peers: Option<String>,
    /// The password of an encrypted key.
    pub password: Option<String>,
}

/// How much may wait to be written to a client. There are no replicas, so theirs has no effect.
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
    /// So many bytes; 0 is no limit.
    Bytes(u64),
    /// So many hundredths of the machine's memory.
    Percent(u8),
}

impl MemoryLimit {
    /// The limit in bytes on a machine with so much memory; `None` is no limit.
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

/// A limit on what waits for a client; beyond it the client is disconnected. 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutputLimit {
    /// Bytes that end the connection at once.
    pub hard_bytes: u64,
    /// Bytes that end it when they stay above for some time.
    pub soft_bytes: u64,
    /// How long that is.
    pub soft_s: u32,
}

impl OutputLimit {
    /// Whether so much may not wait, as Redis's `checkClientOutputBufferLimits` has it.
    /// `above_soft_since_ms` is kept from one question to the next.
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

named! {
    /// Channels of a user whose rules name none.
    pub enum ChannelsDefault {
        /// All of them.
        AllChannels = "allchannels",
        /// None.
        #[default]
        ResetChannels = "resetchannels",
    }
}

named! {
    /// What happens beyond `maxmemory`: of Redis's policies, Quoin has the one that evicts nothing.
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
        /// An object of JSON each.
        Json = "json",
    }
}

named! {
    /// How much the log says: Redis's levels.
    pub enum LogLevel {
        /// Everything, for development.
        Debug = "debug",
        /// Details that are rarely of use.
        Verbose = "verbose",
        /// What one wants to know in production.
        #[default]
        Notice = "notice",
        /// Only what is wrong.
        Warning = "warning",
        /// Nothing at all.
        Nothing = "nothing",
    }
}

impl LogLevel {
    /// The name of the level that `given` means at the start, where the words of the log's own
    /// lines are taken too. CONFIG SET takes what Redis takes.
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
