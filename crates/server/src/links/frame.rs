//! What servers send each other over a link: frames, each preceded by its length.
//!
//! ```text
//! request   number u64, reply_bytes_max u32, calls
//! call      u8: 0 a command, 1 a transaction; commands u16, each: database u32, protocol u8, arguments u32, each: bytes
//! response  number u64, u8: 0 not run, 1 ran; calls u32, each: u8: 0 one reply, 1 a transaction's; replies u32, each: bytes
//! bytes     length u32, then as many
//! ```
//!
//! No request has the number 0. A response with it says that the server stops: it runs nothing
//! more, and ends the link once the other server has done so.
//!
//! A reply is encoded for the client, in the protocol that its command names. Numbers are
//! big-endian.

use bytes::{Buf, BufMut, Bytes, BytesMut, TryGetError};

use quoin_data::command::call::Invocation;
use quoin_data::unit::host::Origin;
use quoin_engine::{Bundle, Call, Work};
use quoin_resp::reply::Reply;
use quoin_resp::wire::encode::{Protocol, encode};

/// Bytes of the length before a frame.
const LENGTH_BYTES: usize = size_of::<u32>();
const SINGLE: u8 = 0;
const TRANSACTION: u8 = 1;
const NOT_RUN: u8 = 0;
const RAN: u8 = 1;

/// The number of a response to no request: the server stops.
pub(super) const GOODBYE: u64 = 0;

/// A frame that this version does not understand. It ends the link.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    /// It ends too early.
    #[error("a frame ends too early")]
    Short(#[from] TryGetError),
    /// A part has an unknown form.
    #[error("a frame has an unknown {0}")]
    Unknown(&'static str),
    /// It is longer than any that a server sends.
    #[error("a frame of {0} bytes")]
    Long(usize),
}

/// Commands for the other server to run as one submission.
pub(super) struct Request {
    /// The number that the response will have.
    pub(super) number: u64,
    pub(super) reply_bytes_max: usize,
    /// Empty if this version does not know one of the commands.
    pub(super) calls: Vec<Call>,
}

/// The outcome of a request.
#[derive(Debug, PartialEq)]
pub(super) struct Response {
    pub(super) number: u64,
    /// Replies of the first calls. `None` if none of them ran.
    pub(super) replies: Option<Vec<Reply>>,
}

/// Takes a whole frame of at most `bytes_max` bytes out of what has arrived.
pub(super) fn take_frame(
    input: &mut BytesMut,
    bytes_max: usize,
) -> Result<Option<Bytes>, FrameError> {
    let Some(length) = input.first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*length) as usize;
    if length > bytes_max {
        return Err(FrameError::Long(length));
    }
    if input.len() < LENGTH_BYTES + length {
        input.reserve(LENGTH_BYTES + length - input.len());
        return Ok(None);
    }
    input.advance(LENGTH_BYTES);
    Ok(Some(input.split_to(length).freeze()))
}

/// Appends a request. `None`, without appending anything, if a call cannot be expressed here.
pub(super) fn put_request(
    number: u64,
    reply_bytes_max: usize,
    calls: &[Call],
    output: &mut BytesMut,
) -> Option<()> {
    put_frame(output, |output| {
        output.put_u64(number);
        output.put_u32(u32::try_from(reply_bytes_max).unwrap_or(u32::MAX));
        for call in calls {
            let (kind, invocations) = match &call.work {
                Work::Command(invocation) => (SINGLE, std::slice::from_ref(invocation)),
                Work::Transaction(bundle) => (TRANSACTION, bundle.invocations.as_slice()),
                Work::WakeUp(..) | Work::ReadJob { .. } | Work::WriteJob { .. } => return None,
            };
            output.put_u8(kind);
            output.put_u16(u16::try_from(invocations.len()).ok()?);
            for one in invocations {
                output.put_u32(one.database);
                output.put_u8(match one.origin.forwarded_as? {
                    Protocol::Resp2 => 2,
                    Protocol::Resp3 => 3,
                });
                output.put_u32(u32::try_from(one.arguments.len()).ok()?);
                for argument in &one.arguments {
                    put_bytes(argument, output)?;
                }
            }
        }
        Some(())
    })
}

/// Reads a request. The arguments share the frame's memory.
pub(super) fn read_request(mut frame: Bytes) -> Result<Request, FrameError> {
    let number = frame.try_get_u64()?;
    let reply_bytes_max = frame.try_get_u32()? as usize;
    let mut calls = Vec::new();
    while !frame.is_empty() {
        let kind = frame.try_get_u8()?;
        let count = frame.try_get_u16()?;
        let invocations = (0..count).map(|_| read_invocation(&mut frame));
        let invocations: Result<Option<Vec<Invocation>>, FrameError> = invocations.collect();
        let Some(mut invocations) = invocations? else {
            calls.clear();
            break;
        };
        calls.push(match (kind, invocations.pop()) {
            (SINGLE, Some(only)) if invocations.is_empty() => Call::command(only, true),
            (TRANSACTION, last) => {
                invocations.extend(last);
                let bundle = Bundle {
                    invocations,
                    watched: Vec::new(),
                    touched: Default::default(),
                };
                Call::transaction(bundle, true)
            }
            _ => return Err(FrameError::Unknown("kind of call")),
        });
    }
    Ok(Request {
        number,
        reply_bytes_max,
        calls,
    })
}

/// Reads a command. `None` if this version does not know it.
fn read_invocation(frame: &mut Bytes) -> Result<Option<Invocation>, FrameError> {
    let database = frame.try_get_u32()?;
    let protocol = match frame.try_get_u8()? {
        2 => Protocol::Resp2,
        3 => Protocol::Resp3,
        _ => return Err(FrameError::Unknown("protocol")),
    };
    let count = frame.try_get_u32()?;
    let arguments: Result<Vec<Bytes>, FrameError> = (0..count).map(|_| read_bytes(frame)).collect();
    let Ok(invocation) = Invocation::resolve(database, arguments?) else {
        return Ok(None);
    };
    Ok(Some(Invocation {
        origin: Origin {
            forwarded_as: Some(protocol),
            ..Origin::SERVER
        },
        ..invocation
    }))
}

/// Appends the response to a request: the calls `done` with their replies, or that nothing ran.
pub(super) fn put_response(
    number: u64,
    ran: Option<(&[Call], &[Reply])>,
    output: &mut BytesMut,
) -> Option<()> {
    put_frame(output, |output| {
        output.put_u64(number);
        let Some((done, replies)) = ran else {
            output.put_u8(NOT_RUN);
            return Some(());
        };
        output.put_u8(RAN);
        for (call, reply) in done.iter().zip(replies) {
            match (&call.work, reply) {
                (Work::Transaction(bundle), Reply::Array(items)) => {
                    output.put_u8(TRANSACTION);
                    output.put_u32(u32::try_from(items.len()).ok()?);
                    for (invocation, item) in bundle.invocations.iter().zip(items) {
                        put_reply(invocation, item, output)?;
                    }
                }
                (Work::Transaction(bundle), reply) => {
                    output.put_u8(SINGLE);
                    put_reply(bundle.invocations.first()?, reply, output)?;
                }
                (Work::Command(invocation), reply) => {
                    output.put_u8(SINGLE);
                    put_reply(invocation, reply, output)?;
                }
                _ => return None,
            }
        }
        Some(())
    })
}

/// Reads a response.
pub(super) fn read_response(mut frame: Bytes) -> Result<Response, FrameError> {
    let number = frame.try_get_u64()?;
    let replies = match frame.try_get_u8()? {
        NOT_RUN => None,
        RAN => {
            let mut replies = Vec::new();
            while !frame.is_empty() {
                replies.push(match frame.try_get_u8()? {
                    SINGLE => read_reply(&mut frame)?,
                    TRANSACTION => {
                        let count = frame.try_get_u32()?;
                        let items: Result<_, _> =
                            (0..count).map(|_| read_reply(&mut frame)).collect();
                        Reply::Array(items?)
                    }
                    _ => return Err(FrameError::Unknown("kind of reply")),
                });
            }
            Some(replies)
        }
        _ => return Err(FrameError::Unknown("kind of response")),
    };
    Ok(Response { number, replies })
}

fn put_reply(invocation: &Invocation, reply: &Reply, output: &mut BytesMut) -> Option<()> {
    let at = output.len();
    output.put_u32(0);
    encode(reply, invocation.origin.forwarded_as?, output);
    put_length_at(at, output)
}

/// A reply as it was encoded. This server needs to distinguish only errors and null replies.
fn read_reply(frame: &mut Bytes) -> Result<Reply, FrameError> {
    let bytes = read_bytes(frame)?;
    Ok(match &*bytes {
        b"$-1\r\n" | b"_\r\n" => Reply::Null,
        b"*-1\r\n" => Reply::NullArray,
        [b'-', line @ .., b'\r', b'\n'] => match std::str::from_utf8(line) {
            Ok(line) => Reply::Error(line.to_owned()),
            Err(_) => Reply::Encoded(bytes),
        },
        _ => Reply::Encoded(bytes),
    })
}

fn put_bytes(bytes: &[u8], output: &mut BytesMut) -> Option<()> {
    output.put_u32(u32::try_from(bytes.len()).ok()?);
    output.put_slice(bytes);
    Some(())
}

fn read_bytes(frame: &mut Bytes) -> Result<Bytes, FrameError> {
    let length = frame.try_get_u32()? as usize;
    if frame.len() < length {
        return Err(TryGetError {
            requested: length,
            available: frame.len(),
        }
        .into());
    }
    Ok(frame.split_to(length))
}

/// Appends a frame that `put` writes, after its length. Undoes it if `put` fails or the frame is too long.
fn put_frame(output: &mut BytesMut, put: impl FnOnce(&mut BytesMut) -> Option<()>) -> Option<()> {
    let at = output.len();
    output.put_u32(0);
    let done = put(output).and_then(|()| put_length_at(at, output));
    if done.is_none() {
        output.truncate(at);
    }
    done
}

/// Writes the length of what follows into the space reserved for it at `at`.
fn put_length_at(at: usize, output: &mut BytesMut) -> Option<()> {
    let length = output.len().checked_sub(at + LENGTH_BYTES)?;
    let length = u32::try_from(length).ok()?;
    let place = output.get_mut(at..at + LENGTH_BYTES)?;
    place.copy_from_slice(&length.to_be_bytes());
    Some(())
}
