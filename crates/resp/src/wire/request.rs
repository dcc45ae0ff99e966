//! Requests from bytes: a parser that goes on where it stopped.
//!
//! What is accepted, refused and skipped follows `processMultibulkBuffer` and
//! `processInlineBuffer` of Redis 7.2 (`networking.c`), including what looks like an accident: the
//! two bytes behind a length line or an argument are not looked at, and a NUL byte inside a line
//! hides the rest of it (Redis searches C strings). Where Redis's answer depends on how the bytes
//! were cut into reads, ours does not: a line is too long if its end is not among the first
//! `REQUEST_INLINE_BYTES_MAX + 1` bytes.
//!
//! Memory: an argument never keeps the read buffer alive. Short ones are copied into a chunk that
//! they share, longer ones into allocations of their own, and long ones that are still arriving
//! get a buffer of their own, which becomes the argument without a copy.

use bytes::{Buf, Bytes, BytesMut};

use super::ProtocolError;
use crate::wire::inline::split_arguments;
use quoin_base::limits::{
    REQUEST_ARGUMENTS_MAX, REQUEST_BULK_BYTES_MAX, REQUEST_BYTES_MAX, REQUEST_INLINE_BYTES_MAX,
    REQUEST_OWN_BUFFER_BYTES_MIN, REQUEST_RESERVE_ARGUMENTS_MAX, REQUEST_RESERVE_BYTES_MAX,
    REQUEST_SHARED_ARGUMENT_BYTES_MAX, REQUEST_SHARED_CHUNK_ARGUMENTS_MAX,
    REQUEST_SHARED_CHUNK_BYTES_MAX, UNAUTHENTICATED_ARGUMENTS_MAX, UNAUTHENTICATED_BULK_BYTES_MAX,
};
use quoin_base::number::parse_i64;

/// Bytes that end a length line or an argument; Redis counts them but does not look at them.
const TERMINATOR_BYTES: usize = 2;
/// Bytes to reserve for each short argument before their lengths are known.
const SHARED_ARGUMENT_BYTES_GUESS: usize = 64;

/// One request: the command's name and its arguments. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The command's name, then its arguments.
    pub arguments: Vec<Bytes>,
}

impl Request {
    /// Bytes that the arguments take, what holds each of them included; used to bound what waits
    /// for the executor, or for EXEC.
    pub fn held_bytes(&self) -> usize {
        let held = |argument: &Bytes| argument.len() + size_of::<Bytes>();
        size_of::<Self>() + self.arguments.iter().map(held).sum::<usize>()
    }
}

/// What a parser lets a client send. The default is that of `limits`.
#[derive(Debug, Clone, Copy)]
pub struct RequestLimits {
    /// Arguments in one request.
    pub arguments_max: usize,
    /// Bytes of one argument (Redis: `proto-max-bulk-len`).
    pub bulk_bytes_max: usize,
    /// Bytes of one request, length lines included.
    pub request_bytes_max: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        RequestLimits {
            arguments_max: REQUEST_ARGUMENTS_MAX,
            bulk_bytes_max: REQUEST_BULK_BYTES_MAX,
            request_bytes_max: REQUEST_BYTES_MAX,
        }
    }
}

/// Turns the bytes of one connection into requests.
#[derive(Debug)]
pub struct RequestParser {
    limits: RequestLimits,
    /// The error that ended this connection's input.
    failed: Option<ProtocolError>,
    /// Bytes at the front of the buffer that hold no end of the current line.
    scanned_bytes: usize,
    /// Bytes that the request under way has taken from the buffer or announced.
    request_bytes: usize,
    /// Arguments of the request under way that are still to come; 0 between requests.
    arguments_missing: usize,
    /// Length of the argument under way, once its length line has been read.
    bulk_bytes: Option<usize>,
    /// Whether the buffer was made for the argument under way.
    buffer_is_bulk: bool,
    /// Arguments of the request under way; those that are in `shared` are still empty here.
    arguments: Vec<Bytes>,
    /// Bytes of short arguments, one behind the other.
    shared: BytesMut,
    /// Which arguments are in `shared`: position in `arguments` and length.
    shared_arguments: Vec<(usize, usize)>,
    /// Bytes looked at or copied, and turns of loops: what a linear time is proven with.
    #[cfg(test)]
    steps: usize,
}

/// Where a line ends.
enum LineEnd {
    At(usize),
    NotYet,
    TooFar,
}

impl RequestParser {
    /// A parser for a new connection.
    pub fn new(limits: RequestLimits) -> Self {
        RequestParser {
            limits,
            failed: None,
            scanned_bytes: 0,
            request_bytes: 0,
            arguments_missing: 0,
            bulk_bytes: None,
            buffer_is_bulk: false,
            arguments: Vec::new(),
            shared: BytesMut::new(),
            shared_arguments: Vec::new(),
            #[cfg(test)]
            steps: 0,
        }
    }

    /// Takes the next request from the front of `buffer`, or what there is of it.
    ///
    /// `None`: more bytes are needed; append them to the same `buffer` and call again.
    /// `authenticated` is false while the client still has to authenticate, which lowers the
    /// limits (`authRequired` in Redis); it may change from request to request, so a caller runs
    /// each request before it parses the next until then.
    ///
    /// # Errors
    /// What the client sent is not the protocol. The connection cannot go on; every later call
    /// returns the same error.
    pub fn parse(
        &mut self,
        buffer: &mut BytesMut,
        authenticated: bool,
    ) -> Result<Option<Request>, ProtocolError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let outcome = self.parse_next(buffer, authenticated);
        if let Err(error) = outcome {
            *self = RequestParser::new(self.limits);
            self.failed = Some(error);
        }
        outcome
    }

    /// Bytes that the connection should have room for in `buffer` before it reads on; 0 if its
    /// usual read size will do. Grows with what has arrived, so that announcing a long argument
    /// alone does not take its memory.
    pub fn bytes_to_reserve(&self, buffer: &BytesMut) -> usize {
        let Some(bulk_bytes) = self.bulk_bytes else {
            return 0;
        };
        bulk_bytes
            .saturating_add(TERMINATOR_BYTES)
            .saturating_sub(buffer.len())
            .min(buffer.len().max(REQUEST_RESERVE_BYTES_MAX))
    }

    /// Bytes that the arguments take which were taken out of the buffer for a request that is not
    /// whole yet, what holds each of them included.
    pub fn held_bytes(&self) -> usize {
        let announced = self.bulk_bytes.map_or(0, |bytes| bytes + TERMINATOR_BYTES);
        let taken = self.request_bytes.saturating_sub(announced);
        taken.saturating_add(self.arguments.len() * size_of::<Bytes>())
    }

    /// Whether a part of a request has been taken in already.
    pub fn is_inside_request(&self) -> bool {
        self.arguments_missing > 0
    }

    fn parse_next(
        &mut self,
        buffer: &mut BytesMut,
        authenticated: bool,
    ) -> Result<Option<Request>, ProtocolError> {
        loop {
            self.count_steps(1);
            if self.arguments_missing > 0 {
                if !self.parse_argument(buffer, authenticated)? {
                    return Ok(None);
                }
                if self.arguments_missing == 0 {
                    self.freeze_shared();
                    self.request_bytes = 0;
                    let arguments = std::mem::take(&mut self.arguments);
                    return Ok(Some(Request { arguments }));
                }
                continue;
            }
            match buffer.first() {
                None => return Ok(None),
                Some(b'*') => {
                    if !self.parse_count(buffer, authenticated)? {
                        return Ok(None);
                    }
                }
                Some(_) => match self.parse_inline(buffer)? {
                    None => return Ok(None),
                    Some(arguments) if arguments.is_empty() => {}
                    Some(arguments) => return Ok(Some(Request { arguments })),
                },
            }
        }
    }

    /// Reads `*<count>`; false if the line is not complete. A count of 0 or less is no request.
    fn parse_count(
        &mut self,
        buffer: &mut BytesMut,
        authenticated: bool,
    ) -> Result<bool, ProtocolError> {
        let end = match self.find_line_end(buffer, b'\r') {
            LineEnd::At(end) => end,
            LineEnd::NotYet => return Ok(false),
            LineEnd::TooFar => return Err(ProtocolError::TooBigMultibulkCount),
        };
        if buffer.len() < end.saturating_add(TERMINATOR_BYTES) {
            return Ok(false);
        }
        let count = parse_i64(buffer.get(1..end).unwrap_or_default())
            .ok_or(ProtocolError::InvalidMultibulkLength)?;
        let count = usize::try_from(count).unwrap_or(0);
        if count > self.limits.arguments_max {
            return Err(ProtocolError::InvalidMultibulkLength);
        }
        if count > UNAUTHENTICATED_ARGUMENTS_MAX && !authenticated {
            return Err(ProtocolError::UnauthenticatedMultibulkLength);
        }
        self.take_line(buffer, end);
        if count == 0 {
            self.request_bytes = 0;
        } else {
            self.arguments_missing = count;
            self.arguments = Vec::with_capacity(count.min(REQUEST_RESERVE_ARGUMENTS_MAX));
        }
        Ok(true)
    }

    /// Reads one `$<length>` and its bytes; false if they are not complete.
    fn parse_argument(
        &mut self,
        buffer: &mut BytesMut,
        authenticated: bool,
    ) -> Result<bool, ProtocolError> {
        let bulk_bytes = match self.bulk_bytes {
            Some(bulk_bytes) => bulk_bytes,
            None => match self.parse_bulk_length(buffer, authenticated)? {
                Some(bulk_bytes) => bulk_bytes,
                None => return Ok(false),
            },
        };
        if buffer.len() < bulk_bytes.saturating_add(TERMINATOR_BYTES) {
            return Ok(false);
        }
        self.take_argument(buffer, bulk_bytes);
        self.bulk_bytes = None;
        self.arguments_missing = self.arguments_missing.saturating_sub(1);
        Ok(true)
    }

    fn parse_bulk_length(
        &mut self,
        buffer: &mut BytesMut,
        authenticated: bool,
    ) -> Result<Option<usize>, ProtocolError> {
        let end = match self.find_line_end(buffer, b'\r') {
            LineEnd::At(end) => end,
            LineEnd::NotYet => return Ok(None),
            LineEnd::TooFar => return Err(ProtocolError::TooBigBulkCount),
        };
        if buffer.len() < end.saturating_add(TERMINATOR_BYTES) {
            return Ok(None);
        }
        match buffer.first() {
            Some(b'$') => {}
            Some(other) => return Err(ProtocolError::ExpectedDollar(*other)),
            None => return Ok(None),
        }
        let bulk_bytes = parse_i64(buffer.get(1..end).unwrap_or_default())
            .and_then(|length| usize::try_from(length).ok())
            .filter(|length| *length <= self.limits.bulk_bytes_max)
            .ok_or(ProtocolError::InvalidBulkLength)?;
        if bulk_bytes > UNAUTHENTICATED_BULK_BYTES_MAX && !authenticated {
            return Err(ProtocolError::UnauthenticatedBulkLength);
        }
        self.take_line(buffer, end);
        self.request_bytes = self
            .request_bytes
            .saturating_add(bulk_bytes)
            .saturating_add(TERMINATOR_BYTES);
        if self.request_bytes > self.limits.request_bytes_max {
            return Err(ProtocolError::TooBigRequest);
        }
        self.bulk_bytes = Some(bulk_bytes);
        self.give_bulk_own_buffer(buffer, bulk_bytes);
        Ok(Some(bulk_bytes))
    }

    /// Moves a long argument that has only begun to arrive to the front of a buffer of its own.
    /// What moves is at most what one read left over.
    fn give_bulk_own_buffer(&mut self, buffer: &mut BytesMut, bulk_bytes: usize) {
        let whole_bytes = bulk_bytes.saturating_add(TERMINATOR_BYTES);
        if bulk_bytes < REQUEST_OWN_BUFFER_BYTES_MIN || buffer.len() >= whole_bytes {
            return;
        }
        let room_bytes = whole_bytes.min(buffer.len().max(REQUEST_RESERVE_BYTES_MAX));
        let mut own = BytesMut::with_capacity(room_bytes);
        self.count_steps(buffer.len());
        own.extend_from_slice(buffer);
        *buffer = own;
        self.buffer_is_bulk = true;
    }

    /// Moves a complete argument out of the buffer.
    fn take_argument(&mut self, buffer: &mut BytesMut, bulk_bytes: usize) {
        let whole_bytes = bulk_bytes.saturating_add(TERMINATOR_BYTES);
        if std::mem::take(&mut self.buffer_is_bulk) {
            let mut bulk = buffer.split_to(whole_bytes.min(buffer.len()));
            bulk.truncate(bulk_bytes);
            self.arguments.push(bulk.freeze());
            // What was read behind it leaves that allocation, or the connection would keep it.
            self.count_steps(buffer.len());
            *buffer = BytesMut::from(buffer.as_ref());
            return;
        }
        self.count_steps(bulk_bytes);
        let bytes = buffer.get(..bulk_bytes).unwrap_or_default();
        if bytes.is_empty() {
            self.arguments.push(Bytes::new());
        } else if bytes.len() > REQUEST_SHARED_ARGUMENT_BYTES_MAX {
            self.arguments.push(Bytes::copy_from_slice(bytes));
        } else {
            if self.shared.is_empty() {
                let guess = self
                    .arguments_missing
                    .saturating_mul(SHARED_ARGUMENT_BYTES_GUESS)
                    .min(REQUEST_SHARED_CHUNK_BYTES_MAX)
                    .min(buffer.len());
                self.shared.reserve(guess.max(bytes.len()));
            }
            self.shared_arguments
                .push((self.arguments.len(), bytes.len()));
            self.shared.extend_from_slice(bytes);
            self.arguments.push(Bytes::new());
        }
        buffer.advance(whole_bytes.min(buffer.len()));
        if self.shared.len() >= REQUEST_SHARED_CHUNK_BYTES_MAX
            || self.shared_arguments.len() >= REQUEST_SHARED_CHUNK_ARGUMENTS_MAX
        {
            self.freeze_shared();
        }
    }

    /// Puts the short arguments that were collected in their places.
    fn freeze_shared(&mut self) {
        let mut chunk = std::mem::take(&mut self.shared).freeze();
        for (position, bytes) in self.shared_arguments.drain(..) {
            if let Some(argument) = self.arguments.get_mut(position) {
                *argument = chunk.split_to(bytes.min(chunk.len()));
            }
        }
    }

    /// Reads one inline request; none if its line is not complete. It may have no arguments.
    fn parse_inline(&mut self, buffer: &mut BytesMut) -> Result<Option<Vec<Bytes>>, ProtocolError> {
        let end = match self.find_line_end(buffer, b'\n') {
            LineEnd::At(end) => end,
            LineEnd::NotYet => return Ok(None),
            LineEnd::TooFar => return Err(ProtocolError::TooBigInlineRequest),
        };
        let line = buffer.get(..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let arguments = split_arguments(line).ok_or(ProtocolError::UnbalancedQuotes)?;
        buffer.advance(end.saturating_add(1).min(buffer.len()));
        self.scanned_bytes = 0;
        self.count_steps(end);
        Ok(Some(arguments))
    }

    /// Searches for the end of the line at the front of `buffer`, from where the last search
    /// stopped.
    fn find_line_end(&mut self, buffer: &BytesMut, end: u8) -> LineEnd {
        let searched = buffer.len().min(REQUEST_INLINE_BYTES_MAX.saturating_add(1));
        let unseen = buffer.get(self.scanned_bytes..searched).unwrap_or_default();
        let found = unseen.iter().position(|byte| *byte == end || *byte == 0);
        let seen_bytes = found.unwrap_or(unseen.len());
        let found_byte = found.and_then(|position| unseen.get(position)).copied();
        self.count_steps(seen_bytes.saturating_add(1));
        // A NUL is not passed: every later search stops at it again.
        self.scanned_bytes = self.scanned_bytes.saturating_add(seen_bytes);
        if found_byte == Some(end) {
            LineEnd::At(self.scanned_bytes)
        } else if buffer.len() > REQUEST_INLINE_BYTES_MAX {
            LineEnd::TooFar
        } else {
            LineEnd::NotYet
        }
    }

    /// Drops a length line that has been read.
    fn take_line(&mut self, buffer: &mut BytesMut, end: usize) {
        let whole_bytes = end.saturating_add(TERMINATOR_BYTES).min(buffer.len());
        buffer.advance(whole_bytes);
        self.scanned_bytes = 0;
        self.request_bytes = self.request_bytes.saturating_add(whole_bytes);
    }

    #[cfg(test)]
    fn count_steps(&mut self, steps: usize) {
        self.steps += steps;
    }

    #[cfg(not(test))]
    #[inline(always)]
    fn count_steps(&mut self, _steps: usize) {}
}

#[cfg(test)]
mod tests;
