//! Typed errors, and the only place that converts them to RESP error lines.

use bytes::Bytes;
use quoin_base::decode_error::DecodeError;
use quoin_rdb::DumpError;
use quoin_store::{Growth, StoreError};

/// Why a command failed. The texts are those of Redis 7.2.
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
    /// A position outside a list.
    #[error("ERR index out of range")]
    IndexOutOfRange,
    /// A database number outside the range of SELECT.
    #[error("ERR DB index is out of range")]
    DatabaseOutOfRange,
    /// The number of arguments is wrong for the command (name in lower case).
    #[error("ERR wrong number of arguments for '{0}' command")]
    WrongArity(String),
    /// Any other error: the whole line after the `-`.
    #[error("{0}")]
    Text(std::borrow::Cow<'static, str>),
    /// The payload of RESTORE is invalid.
    #[error("ERR {0}")]
    Payload(#[from] DumpError),
    /// The name of a new key exceeds the store's limit, which is given.
    #[error("ERR key name is longer than {0} bytes, the most that this store keeps")]
    KeyNameTooLong(usize),
    /// The command needs more than one transaction of the store can hold.
    #[error(
        "ERR command needs more than one transaction of the store can hold; nothing was changed"
    )]
    TooLarge,
    /// Elements of this queue, which the command would replace, are granted to other servers. They are returned to the
    /// queue and the command is executed again, so clients do not see this error.
    #[error("ERR elements of the queue are on their way to other servers")]
    GrantsOutstanding {
        /// Its database.
        database: u32,
        /// Its name.
        key: Bytes,
    },
    /// The script exceeds the time limit here. It is executed again where it may take longer, so clients do not see
    /// this error.
    #[error("ERR the script needs more time")]
    ScriptOutOfTime,
    /// The replies of an EXEC exceed the size that is sent to a client at once.
    #[error("ERR replies of the transaction are too large; this was not done")]
    RepliesTooLarge,
    /// The messages of a command, script or EXEC are too large in total.
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
    /// The command adds data, and `maxmemory` is reached.
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

    /// The error of a command that adds data if the store accepts no more.
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

    /// The error line after the `-`. Line breaks, which the protocol cannot represent, become spaces as in Redis.
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

/// The text for clients when the store fails. It says whether the write was applied only if that is known.
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
        // Client libraries know this code. It means that the command was not executed and may be sent again.
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
