//! Typed errors, and the one place that turns them into RESP error lines.

use quoin_base::decode_error::DecodeError;
use quoin_rdb::DumpError;
use quoin_store::{Growth, StoreError};

/// Why a command was not carried out. Each variant's text is what Redis 7.2 says.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommandError {
    /// The key holds a value of another type.
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    /// The arguments do not follow the command's grammar.
    #[error("ERR syntax error")]
    Syntax,
    /// An argument is not a 64-bit integer.
    #[error("ERR value is not an integer or out of range")]
    NotAnInteger,
    /// An argument is not a floating-point number.
    #[error("ERR value is not a valid float")]
    NotAFloat,
    /// The key that the command needs does not exist.
    #[error("ERR no such key")]
    NoSuchKey,
    /// A position beyond the ends of a list.
    #[error("ERR index out of range")]
    IndexOutOfRange,
    /// A database number that SELECT does not reach.
    #[error("ERR DB index is out of range")]
    DatabaseOutOfRange,
    /// The number of arguments does not fit the command (`name` in lower case).
    #[error("ERR wrong number of arguments for '{0}' command")]
    WrongArity(String),
    /// Any other refusal: the whole line behind the `-`.
    #[error("{0}")]
    Text(std::borrow::Cow<'static, str>),
    /// RESTORE was given what is no serialized value.
    #[error("ERR {0}")]
    Payload(#[from] DumpError),
    /// A key would come to be whose name is longer than the store can keep, by its bound.
    #[error("ERR key name is longer than {0} bytes, the most that this store keeps")]
    KeyNameTooLong(usize),
    /// The command needs more than one transaction of the store can hold.
    #[error(
        "ERR command needs more than one transaction of the store can hold; nothing was changed"
    )]
    TooLarge,
    /// Elements of a queue that the command would replace are on their way to other servers. They
    /// return to the queue and the command runs again, so clients do not see this.
    #[error("ERR elements of the queue are on their way to other servers")]
    GrantsOutstanding,
    /// The script may not take longer here. It runs again where it may, so clients do not see this.
    #[error("ERR the script needs more time")]
    ScriptOutOfTime,
    /// An EXEC's replies together are more than a client is sent at once.
    #[error("ERR replies of the transaction are too large; this was not done")]
    RepliesTooLarge,
    /// The messages of a command, of a script or of an EXEC are too large together.
    #[error(
        "ERR a command, a script or a transaction cannot publish more than 256 MB at once; this \
         was not done"
    )]
    PublishesTooMuch,
    /// The command adds data, and the disk is full.
    #[error(
        "MISCONF Store has no room on its disk. Commands that add data are refused, commands \
         that remove data are not."
    )]
    NoRoomToGrow,
    /// The command adds data, and there is as much as `maxmemory` allows.
    #[error("OOM command not allowed when used memory > 'maxmemory'.")]
    OutOfMemory,
    /// The store failed.
    #[error("{}", store_error_text(.0))]
    Store(#[from] StoreError),
}

impl CommandError {
    /// A refusal with a fixed text.
    pub const fn text(line: &'static str) -> Self {
        CommandError::Text(std::borrow::Cow::Borrowed(line))
    }

    /// The error of a command that adds data, where the store does not take more.
    pub fn of_growth(growth: Growth) -> Option<Self> {
        match growth {
            Growth::Free => None,
            Growth::AtBound => Some(CommandError::OutOfMemory),
            Growth::DiskFull => Some(CommandError::NoRoomToGrow),
        }
    }

    /// The error of an EXEC that is refused as a whole for this reason (Redis: `execCommandAbort`).
    pub fn abort_of_exec(line: &str) -> Self {
        let reason = line.strip_prefix("ERR ").unwrap_or(line);
        let line = format!("EXECABORT Transaction discarded because of: {reason}");
        CommandError::Text(line.into())
    }

    /// The error line behind the `-`: the one place where errors become RESP.
    /// Line breaks, which the protocol cannot carry, become spaces as in Redis.
    pub fn to_line(&self) -> String {
        let line = self.to_string();
        if line.contains(['\r', '\n']) {
            line.replace(['\r', '\n'], " ")
        } else {
            line
        }
    }
}

impl From<DecodeError> for CommandError {
    fn from(error: DecodeError) -> Self {
        StoreError::from(error).into()
    }
}

/// What a client reads when the store fails: never whether the write was applied unless it is
/// known.
fn store_error_text(error: &StoreError) -> String {
    match error {
        StoreError::Conflict => {
            "TRYAGAIN Store transaction kept conflicting with others; nothing was changed"
                .to_owned()
        }
        StoreError::UnknownResult => {
            "UNKNOWN Store did not tell whether the command was applied".to_owned()
        }
        StoreError::TooLarge => CommandError::TooLarge.to_string(),
        StoreError::TooOld => {
            "TRYAGAIN Store transaction took too long; nothing was changed".to_owned()
        }
        StoreError::Busy(reason) => {
            format!("TRYAGAIN Store is busy: {reason}; nothing was changed")
        }
        // A code that client libraries know: what it is about was not carried out, and may be
        // sent again.
        StoreError::Unreachable(reason) => {
            format!("CLUSTERDOWN Store cannot be reached: {reason}; nothing was changed")
        }
        StoreError::NoRoom(reason) => {
            format!("MISCONF Store has no room: {reason}; nothing was changed")
        }
        StoreError::Unavailable(reason) => format!("MISCONF Store is not available: {reason}"),
        StoreError::Fatal(reason) => format!("MISCONF Store failed: {reason}"),
        StoreError::Damaged(reason) => format!("MISCONF Store is damaged: {reason}"),
        StoreError::Corrupt(reason) => format!("ERR Store holds what Quoin cannot read: {reason}"),
    }
}
