//! The reply of a command, before the protocol version of the client is applied.

use bytes::Bytes;
use quoin_base::number::LongDouble;

/// A typed reply. `wire::encode` turns it into RESP2 or RESP3.
///
/// Its tag fills a word, because replies are moved often, and moving whole words is faster than
/// moving the bytes next to a one-byte tag.
#[derive(Debug, Clone, PartialEq)]
#[repr(u64)]
pub enum Reply {
    /// A status such as `+OK`.
    Simple(&'static str),
    /// A status from a script.
    Status(Bytes),
    /// An error: the whole line after the `-`, including the code (`ERR syntax error`).
    Error(String),
    /// A 64-bit integer.
    Integer(i64),
    /// A byte string.
    Bulk(Bytes),
    /// No value: `$-1` in RESP2, `_` in RESP3.
    Null,
    /// No array: `*-1` in RESP2, `_` in RESP3.
    NullArray,
    /// A list of replies.
    Array(Vec<Reply>),
    /// An array of two-element arrays (members with scores): a flat array in RESP2.
    Pairs(Vec<(Reply, Reply)>),
    /// Ordered pairs: a flat array in RESP2.
    Map(Vec<(Reply, Reply)>),
    /// Ordered pairs: an array of two-element arrays in RESP2.
    Keyed(Vec<(Reply, Reply)>),
    /// A set: an array in RESP2.
    Set(Vec<Reply>),
    /// An out-of-band message: an array in RESP2.
    Push(Vec<Reply>),
    /// A floating-point number: a bulk string in RESP2.
    Double(f64),
    /// The same without an exponent and with up to 17 decimals, as for positions and INCREX.
    Decimal(LongDouble),
    /// A whole number among floating-point numbers: an integer, but in RESP2 a bulk string like
    /// them.
    Whole(i64),
    /// A boolean: an integer in RESP2.
    Boolean(bool),
    /// Text with a three-letter format (`txt`): a bulk string in RESP2.
    Verbatim(&'static str, Bytes),
    /// Text with a format that a script has chosen.
    FormattedVerbatim([u8; 3], Bytes),
    /// A whole number of any length, from a script. A bulk string in RESP2.
    BigNumber(Bytes),
    /// Several replies to one command, one after another (SUBSCRIBE).
    Several(Vec<Reply>),
    /// A whole reply in its client's protocol, encoded by another server.
    Encoded(Bytes),
    /// No reply at all (CLIENT REPLY OFF).
    Silence,
}

impl Reply {
    /// `+OK`.
    pub const OK: Reply = Reply::Simple("OK");

    /// A byte string from anything that turns into bytes.
    pub fn bulk(bytes: impl Into<Bytes>) -> Reply {
        Reply::Bulk(bytes.into())
    }

    /// An integer from a count.
    pub fn count(count: usize) -> Reply {
        Reply::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Whether even a client that wants no replies (CLIENT REPLY OFF) gets it: messages, and confirmations of
    /// SUBSCRIBE.
    pub fn is_push(&self) -> bool {
        match self {
            Reply::Push(_) => true,
            Reply::Several(replies) => replies.iter().all(Reply::is_push),
            _ => false,
        }
    }

    /// Whether this says that nothing was found, so that a blocking command waits.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Reply::Null | Reply::NullArray)
    }

    /// Approximate number of bytes on the wire, for bounding the output that waits for a client.
    pub fn size_hint(&self) -> usize {
        match self {
            Reply::Simple(text) => text.len() + 3,
            Reply::Error(text) => text.len() + 3,
            Reply::Bulk(bytes)
            | Reply::Encoded(bytes)
            | Reply::Status(bytes)
            | Reply::Verbatim(_, bytes)
            | Reply::FormattedVerbatim(_, bytes)
            | Reply::BigNumber(bytes) => bytes.len() + 16,
            Reply::Array(items)
            | Reply::Set(items)
            | Reply::Push(items)
            | Reply::Several(items) => 16 + items.iter().map(Reply::size_hint).sum::<usize>(),
            Reply::Map(pairs) | Reply::Pairs(pairs) | Reply::Keyed(pairs) => {
                16 + pairs
                    .iter()
                    .map(|(name, value)| name.size_hint() + value.size_hint())
                    .sum::<usize>()
            }
            _ => 24,
        }
    }
}
