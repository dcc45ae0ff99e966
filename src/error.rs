//! Typed errors, and the one place that turns them into RESP error lines.

use crate::dump::DumpError;
use crate::layout::DecodeError;
use crate::store::StoreError;

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
    /// The command adds data, and the disk is full.
    #[error(
        "MISCONF Store has no room on its disk. Commands that add data are refused, commands \
         that remove data are not."
    )]
    NoRoomToGrow,
    /// The store failed.
    #[error("{}", store_error_text(.0))]
    Store(#[from] StoreError),
}

impl CommandError {
    /// A refusal with a fixed text.
    pub const fn text(line: &'static str) -> Self {
        CommandError::Text(std::borrow::Cow::Borrowed(line))
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

impl From<DecodeError> for StoreError {
    fn from(DecodeError(what): DecodeError) -> Self {
        StoreError::Corrupt(what)
    }
}

impl From<DecodeError> for CommandError {
    fn from(error: DecodeError) -> Self {
        StoreError::from(error).into()
    }
}

/// Why what a client sent is not the Redis protocol. The connection writes [`Self::to_line`], if
/// there is one, and closes. The texts are those of Redis 7.2 (`networking.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// An inline request longer than `REQUEST_INLINE_BYTES_MAX`.
    #[error("too big inline request")]
    TooBigInlineRequest,
    /// An inline request whose quotes do not close, or are not followed by a blank.
    #[error("unbalanced quotes in request")]
    UnbalancedQuotes,
    /// The line with the number of arguments does not end.
    #[error("too big mbulk count string")]
    TooBigMultibulkCount,
    /// The number of arguments is not a number, or is too big.
    #[error("invalid multibulk length")]
    InvalidMultibulkLength,
    /// Too many arguments for a client that has not authenticated.
    #[error("unauthenticated multibulk length")]
    UnauthenticatedMultibulkLength,
    /// The line with the length of an argument does not end.
    #[error("too big bulk count string")]
    TooBigBulkCount,
    /// An argument that does not begin with `$` but with this byte.
    #[error("expected '$', got '{}'", char::from(*.0))]
    ExpectedDollar(u8),
    /// The length of an argument is not a number, or is too big.
    #[error("invalid bulk length")]
    InvalidBulkLength,
    /// Too long an argument for a client that has not authenticated.
    #[error("unauthenticated bulk length")]
    UnauthenticatedBulkLength,
    /// A request longer than `REQUEST_BYTES_MAX`; Redis closes such a connection without a word.
    #[error("request is longer than the query buffer limit")]
    TooBigRequest,
}

impl ProtocolError {
    /// The error line behind the `-`, or nothing if the connection closes without one.
    /// Bytes, because the line repeats a byte of the client as it came (line breaks as blanks).
    pub fn to_line(&self) -> Option<Vec<u8>> {
        match self {
            ProtocolError::TooBigRequest => None,
            ProtocolError::ExpectedDollar(byte) => {
                let shown = match byte {
                    b'\r' | b'\n' => b' ',
                    other => *other,
                };
                let mut line = b"ERR Protocol error: expected '$', got '".to_vec();
                line.extend([shown, b'\'']);
                Some(line)
            }
            other => Some(format!("ERR Protocol error: {other}").into_bytes()),
        }
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
