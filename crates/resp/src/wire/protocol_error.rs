//! What is wrong with what a client sent.

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
