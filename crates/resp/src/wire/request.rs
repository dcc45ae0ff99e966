//! Parses requests. A parser resumes where it stopped.
//!
//! What is accepted, refused and skipped follows `processMultibulkBuffer` and `processInlineBuffer`
//! of Redis 7.2 (`networking.c`), including apparent accidents: the two bytes after a length line
//! or an argument are not checked, and a NUL byte inside a line hides the rest of it, because Redis
//! searches C strings. Redis's reply can depend on how the bytes were split into reads. Ours does
//! not: a line is too long if its end is not among the first `REQUEST_INLINE_BYTES_MAX + 1` bytes.
//!
//! Memory: an argument never keeps the read buffer alive. Short ones are copied into a chunk that
//! they share, and longer ones into separate allocations. A long one that is still arriving gets
//! its own buffer, which becomes the argument without a copy.

use bytes::{Buf, Bytes, BytesMut};

use super::inline::split_arguments;
use quoin_base::limits::{
    REQUEST_ARGUMENTS_MAX, REQUEST_BULK_BYTES_MAX, REQUEST_BYTES_MAX, REQUEST_INLINE_BYTES_MAX,
    REQUEST_OWN_BUFFER_BYTES_MIN, REQUEST_RESERVE_ARGUMENTS_MAX, REQUEST_RESERVE_BYTES_MAX,
    REQUEST_SHARED_ARGUMENT_BYTES_MAX, REQUEST_SHARED_CHUNK_ARGUMENTS_MAX,
    REQUEST_SHARED_CHUNK_BYTES_MAX, UNAUTHENTICATED_ARGUMENTS_MAX, UNAUTHENTICATED_BULK_BYTES_MAX,
};
use quoin_base::number::parse_i64;

/// Bytes that end a length line or an argument. Redis counts them but does not check them.
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
    /// Memory of the arguments, including overhead, for bounding what waits for the executor or for
    /// EXEC.
    pub fn held_bytes(&self) -> usize {
        let held = |argument: &Bytes| argument.len() + size_of::<Bytes>();
        size_of::<Self>() + self.arguments.iter().map(held).sum::<usize>()
    }
}

/// What a parser accepts from a client. The default is that of `limits`.
#[derive(Debug, Clone, Copy)]
pub struct RequestLimits {
    /// Arguments in one request.
    pub arguments_max: usize,
    /// Bytes of one argument (Redis: `proto-max-bulk-len`).
    pub bulk_bytes_max: usize,
    /// Bytes of one request, including length lines.
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
    /// Bytes at the front of the buffer that do not contain the end of the current line.
    scanned_bytes: usize,
    /// Bytes that the current request has taken from the buffer or announced.
    request_bytes: usize,
    /// Remaining arguments of the current request. 0 between requests.
    arguments_missing: usize,
    /// Length of the argument in progress, after its length line was read.
    bulk_bytes: Option<usize>,
    /// Whether the buffer was made for the current argument.
    buffer_is_bulk: bool,
    /// Arguments of the current request. Those in `shared` are still empty here.
    arguments: Vec<Bytes>,
    /// Bytes of short arguments, one after another.
    shared: BytesMut,
    /// The arguments in `shared`: index in `arguments` and length.
    shared_arguments: Vec<(usize, usize)>,
    /// Bytes read or copied, and iterations of loops, to prove linear time.
    #[cfg(test)]
    steps: usize,
}

/// The end of a line.
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

    /// Takes the next request from the front of `buffer`, or as much of it as there is.
    ///
    /// `None` means that more bytes are needed: append them to the same `buffer` and call again.
    /// `authenticated` is false while the client still has to authenticate, which lowers the limits
    /// (`authRequired` in Redis). It may change with each request, so until then a caller must run
    /// each request before it parses the next.
    ///
    /// # Errors
    /// If the client has violated the protocol. The connection cannot continue, and every later
    /// call returns the same error.
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

    /// Number of bytes to reserve in `buffer` before reading on. 0 if the usual read size is
    /// enough. It grows with what has arrived, so announcing a long argument takes no memory.
    pub fn bytes_to_reserve(&self, buffer: &BytesMut) -> usize {
        let Some(bulk_bytes) = self.bulk_bytes else {
            return 0;
        };
        bulk_bytes
            .saturating_add(TERMINATOR_BYTES)
            .saturating_sub(buffer.len())
            .min(buffer.len().max(REQUEST_RESERVE_BYTES_MAX))
    }

    /// Memory, including overhead, of arguments that were taken out of the buffer for an incomplete
    /// request.
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

    /// Reads one `$<length>` and its bytes. False if they are incomplete.
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

    /// Moves the beginning of a long argument to the front of its own buffer. This moves at most
    /// the rest of one read.
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
            // The bytes after it are moved out of that allocation, or the connection would keep it.
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

    /// Reads one inline request, which may have no arguments. `None` if its line is incomplete.
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

    /// Searches for the end of the line at the front of `buffer`, starting where the last search
    /// ended.
    fn find_line_end(&mut self, buffer: &BytesMut, end: u8) -> LineEnd {
        let searched = buffer.len().min(REQUEST_INLINE_BYTES_MAX.saturating_add(1));
        let unseen = buffer.get(self.scanned_bytes..searched).unwrap_or_default();
        let found = unseen.iter().position(|byte| *byte == end || *byte == 0);
        let seen_bytes = found.unwrap_or(unseen.len());
        let found_byte = found.and_then(|position| unseen.get(position)).copied();
        self.count_steps(seen_bytes.saturating_add(1));
        // A NUL is not skipped, so every later search stops at it again.
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

/// Why a client's bytes are not the Redis protocol. The connection writes [`Self::to_line`], if
/// there is one, and closes. The texts are those of Redis 7.2 (`networking.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// An inline request longer than `REQUEST_INLINE_BYTES_MAX`.
    #[error("too big inline request")]
    TooBigInlineRequest,
    /// An inline request with a quote that is not closed, or is not followed by a blank.
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
    /// An argument that begins with this byte instead of `$`.
    #[error("expected '$', got '{}'", char::from(*.0))]
    ExpectedDollar(u8),
    /// The length of an argument is not a number, or is too big.
    #[error("invalid bulk length")]
    InvalidBulkLength,
    /// Too long an argument for a client that has not authenticated.
    #[error("unauthenticated bulk length")]
    UnauthenticatedBulkLength,
    /// A request longer than `REQUEST_BYTES_MAX`. Redis closes such a connection without an error.
    #[error("request is longer than the query buffer limit")]
    TooBigRequest,
}

impl ProtocolError {
    /// The error line after the `-`. `None` if the connection closes without one. It is bytes,
    /// because the line repeats a client's byte unchanged, except that line breaks become blanks.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Outcome = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

    /// Parses these chunks like a connection.
    fn parse_chunks<'a>(
        chunks: impl IntoIterator<Item = &'a [u8]>,
        authenticated: bool,
    ) -> Outcome {
        let mut parser = RequestParser::new(RequestLimits::default());
        let mut buffer = BytesMut::new();
        let mut requests = Vec::new();
        for chunk in chunks {
            buffer.reserve(parser.bytes_to_reserve(&buffer));
            buffer.extend_from_slice(chunk);
            loop {
                match parser.parse(&mut buffer, authenticated) {
                    Ok(Some(request)) => {
                        requests.push(
                            request
                                .arguments
                                .iter()
                                .map(|bytes| bytes.to_vec())
                                .collect(),
                        );
                    }
                    Ok(None) => break,
                    Err(error) => return (requests, Some(error)),
                }
            }
        }
        (requests, None)
    }

    fn parse_whole(input: &[u8]) -> Outcome {
        parse_chunks([input], true)
    }

    fn requests(list: &[&[&[u8]]]) -> Outcome {
        let requests = list
            .iter()
            .map(|arguments| arguments.iter().map(|bytes| bytes.to_vec()).collect())
            .collect();
        (requests, None)
    }

    fn error_line(input: &[u8], authenticated: bool) -> Vec<u8> {
        let (_, error) = parse_chunks([input], authenticated);
        error.unwrap().to_line().unwrap()
    }

    fn multibulk(arguments: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
        for argument in arguments {
            bytes.extend(format!("${}\r\n", argument.len()).into_bytes());
            bytes.extend(argument);
            bytes.extend(b"\r\n");
        }
        bytes
    }

    #[test]
    fn a_pipeline_of_both_kinds_is_parsed_in_order() {
        let input = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\nPING\r\n*1\r\n$0\r\n\r\nset \"a b\" c\n";
        assert_eq!(
            parse_whole(input),
            requests(&[&[b"GET", b"a"], &[b"PING"], &[b""], &[b"set", b"a b", b"c"]])
        );
    }

    #[test]
    fn empty_requests_are_skipped() {
        let input = b"\r\n\n  \r\n*0\r\n*-1\r\n*-9223372036854775808\r\nPING\r\n";
        assert_eq!(parse_whole(input), requests(&[&[b"PING"]]));
    }

    #[test]
    fn the_two_bytes_behind_a_length_or_an_argument_are_not_looked_at() {
        assert_eq!(
            parse_whole(b"*1\rX$1\rYaZZPING\n"),
            requests(&[&[b"a"], &[b"PING"]])
        );
    }

    #[test]
    fn arguments_may_hold_any_bytes() {
        assert_eq!(
            parse_whole(b"*2\r\n$3\r\n\0\r\n\r\n$2\r\n\xff*\r\n"),
            requests(&[&[b"\0\r\n", b"\xff*"]])
        );
    }

    /// Each text was answered by Redis 7.2.6 to the same bytes.
    #[test]
    fn what_is_not_the_protocol_is_refused_with_the_texts_of_redis() {
        let long = vec![b'1'; 65_537];
        let after = |prefix: &[u8]| [prefix, &long].concat();
        for (input, line) in [
            (b"*a\r\n".to_vec(), &b"invalid multibulk length"[..]),
            (b"*\r\n".to_vec(), b"invalid multibulk length"),
            (b"*-0\r\n".to_vec(), b"invalid multibulk length"),
            (b"*+1\r\n".to_vec(), b"invalid multibulk length"),
            (b"*2147483648\r\n".to_vec(), b"invalid multibulk length"),
            (b"*1\r\n$a\r\n".to_vec(), b"invalid bulk length"),
            (b"*1\r\n$-1\r\n".to_vec(), b"invalid bulk length"),
            (b"*1\r\n$536870913\r\n".to_vec(), b"invalid bulk length"),
            (b"*1\r\nx\r\n".to_vec(), b"expected '$', got 'x'"),
            (b"*1\r\n*1\r\n".to_vec(), b"expected '$', got '*'"),
            (b"*1\r\n\r\n".to_vec(), b"expected '$', got ' '"),
            (b"*1\r\n\n\r\n".to_vec(), b"expected '$', got ' '"),
            (b"*1\r\n\xff\r\n".to_vec(), b"expected '$', got '\xff'"),
            (b"get \"a\r\n".to_vec(), b"unbalanced quotes in request"),
            (after(b""), b"too big inline request"),
            (after(b"*"), b"too big mbulk count string"),
            (after(b"*1\r\n$"), b"too big bulk count string"),
        ] {
            let expected = [b"ERR Protocol error: ", line].concat();
            assert_eq!(error_line(&input, true), expected, "{:?}", input.get(..20));
        }
    }

    #[test]
    fn a_client_that_has_not_authenticated_has_lower_limits() {
        assert_eq!(
            error_line(b"*11\r\n", false),
            b"ERR Protocol error: unauthenticated multibulk length"
        );
        assert_eq!(
            error_line(b"*1\r\n$16385\r\n", false),
            b"ERR Protocol error: unauthenticated bulk length"
        );
        assert_eq!(
            parse_chunks([&b"*10\r\n$16384\r\n"[..]], false),
            requests(&[])
        );
        assert_eq!(
            parse_chunks([&b"*11\r\n$16385\r\n"[..]], true),
            requests(&[])
        );
    }

    #[test]
    fn a_nul_byte_hides_the_end_of_a_line_as_it_does_in_redis() {
        assert_eq!(parse_whole(b"PI\0NG\r\nPING\r\n"), requests(&[]));
        assert_eq!(parse_whole(b"*1\0\r\n$4\r\nPING\r\n"), requests(&[]));
    }

    #[test]
    fn an_inline_request_of_64_kib_is_accepted_and_one_more_byte_is_not() {
        let mut input = vec![b'a'; REQUEST_INLINE_BYTES_MAX];
        input.push(b'\n');
        assert_eq!(parse_whole(&input).0.len(), 1);
        input.insert(0, b'a');
        assert_eq!(
            parse_whole(&input).1,
            Some(ProtocolError::TooBigInlineRequest)
        );
    }

    #[test]
    fn a_request_is_bounded_as_a_whole_before_its_bytes_arrive() {
        let mut parser = RequestParser::new(RequestLimits {
            request_bytes_max: 100,
            ..RequestLimits::default()
        });
        let mut buffer = BytesMut::from("*3\r\n$40\r\n");
        buffer.extend_from_slice(&[b'x'; 42]);
        buffer.extend_from_slice(b"$43\r\n");
        assert_eq!(
            parser.parse(&mut buffer, true),
            Err(ProtocolError::TooBigRequest)
        );
        assert_eq!(ProtocolError::TooBigRequest.to_line(), None);
    }

    #[test]
    fn the_bound_is_for_one_request_and_not_for_the_connection() {
        let mut parser = RequestParser::new(RequestLimits {
            request_bytes_max: 30,
            ..RequestLimits::default()
        });
        let mut buffer = BytesMut::new();
        for _ in 0..10 {
            buffer.extend_from_slice(b"*1\r\n$4\r\nPING\r\n*0\r\n");
        }
        for _ in 0..10 {
            assert!(matches!(parser.parse(&mut buffer, true), Ok(Some(_))));
        }
    }

    #[test]
    fn an_error_stays() {
        let mut parser = RequestParser::new(RequestLimits::default());
        let mut buffer = BytesMut::from("*a\r\n");
        let error = parser.parse(&mut buffer, true);
        assert!(error.is_err());
        let mut buffer = BytesMut::from("PING\r\n");
        assert_eq!(parser.parse(&mut buffer, true), error);
    }

    #[test]
    fn a_request_parses_the_same_wherever_it_is_cut() {
        let mut input = b"set 'a' \"\\x41\"\r\n*0\r\n\r\n".to_vec();
        input.extend(multibulk(&[
            b"LPUSH".to_vec(),
            b"k\r\n".to_vec(),
            vec![],
            vec![b'v'; 1500],
        ]));
        input.extend(b"PING\n");
        let whole = parse_whole(&input);
        assert_eq!(whole.0.len(), 3);
        for cut in 0..=input.len() {
            let (front, back) = input.split_at(cut);
            assert_eq!(parse_chunks([front, back], true), whole, "cut at {cut}");
        }
        assert_eq!(parse_chunks(input.chunks(1), true), whole);
    }

    #[test]
    fn long_arguments_parse_the_same_whether_or_not_they_get_their_own_buffer() {
        let long: Vec<u8> = (0..3_000_000_u32)
            .map(|number| number.to_le_bytes()[0])
            .collect();
        let arguments = [
            b"RPUSH".to_vec(),
            long,
            vec![b'x'; 40_000],
            b"tail".to_vec(),
        ];
        let mut input = multibulk(&arguments);
        input.extend(b"PING\r\n");
        let whole = parse_whole(&input);
        assert_eq!(whole.0, [arguments.to_vec(), vec![b"PING".to_vec()]]);
        for size in [1000, 16_384, 65_536, 1_000_000] {
            assert_eq!(parse_chunks(input.chunks(size), true), whole);
        }
    }

    #[test]
    fn a_long_argument_that_arrives_in_parts_is_not_copied() {
        let mut parser = RequestParser::new(RequestLimits::default());
        let mut buffer = BytesMut::from("*1\r\n$100000\r\n");
        assert_eq!(parser.parse(&mut buffer, true), Ok(None));
        assert_eq!(parser.bytes_to_reserve(&buffer), 100_002);
        buffer.reserve(parser.bytes_to_reserve(&buffer));
        let address = buffer.as_ptr();
        buffer.extend_from_slice(&[b'x'; 100_000]);
        buffer.extend_from_slice(b"\r\n");
        let request = parser.parse(&mut buffer, true).unwrap().unwrap();
        assert_eq!(request.arguments[0].as_ptr(), address);
        assert_eq!(parser.bytes_to_reserve(&buffer), 0);
    }

    #[test]
    fn what_follows_a_long_argument_leaves_its_allocation() {
        let mut parser = RequestParser::new(RequestLimits::default());
        let mut buffer = BytesMut::from("*1\r\n$100000\r\n");
        assert_eq!(parser.parse(&mut buffer, true), Ok(None));
        buffer.extend_from_slice(&[b'x'; 100_002]);
        buffer.extend_from_slice(b"PING\r\n");
        assert!(matches!(parser.parse(&mut buffer, true), Ok(Some(_))));
        assert_eq!(buffer.as_ref(), b"PING\r\n");
        assert!(buffer.capacity() < 100);
    }

    #[test]
    fn announcing_a_long_argument_does_not_take_its_memory() {
        let mut parser = RequestParser::new(RequestLimits::default());
        let mut buffer = BytesMut::from("*1000000\r\n$536870912\r\n");
        assert_eq!(parser.parse(&mut buffer, true), Ok(None));
        assert!(buffer.capacity() <= REQUEST_RESERVE_BYTES_MAX);
        assert_eq!(parser.bytes_to_reserve(&buffer), REQUEST_RESERVE_BYTES_MAX);
        assert!(parser.arguments.capacity() <= REQUEST_RESERVE_ARGUMENTS_MAX);
    }

    #[test]
    fn an_argument_does_not_keep_the_read_buffer() {
        let mut parser = RequestParser::new(RequestLimits::default());
        let mut buffer = BytesMut::with_capacity(65_536);
        buffer.extend_from_slice(&multibulk(&[b"SET".to_vec(), vec![b'v'; 50_000]]));
        let range = buffer.as_ptr_range();
        let request = parser.parse(&mut buffer, true).unwrap().unwrap();
        for argument in &request.arguments {
            assert!(!range.contains(&argument.as_ptr()));
        }
    }

    #[test]
    fn short_arguments_share_chunks_of_bounded_size() {
        let arguments: Vec<Vec<u8>> = (0..3000_u32)
            .map(|number| vec![b'a'; number as usize % 40])
            .collect();
        let mut parser = RequestParser::new(RequestLimits::default());
        let mut buffer = BytesMut::from(multibulk(&arguments).as_slice());
        let request = parser.parse(&mut buffer, true).unwrap().unwrap();
        assert_eq!(request.arguments, arguments);
        let argument_bytes = arguments.iter().map(Vec::len).sum::<usize>();
        assert!(request.held_bytes() >= argument_bytes + 3000 * size_of::<Bytes>());
        assert!(parser.shared_arguments.capacity() <= 2 * REQUEST_SHARED_CHUNK_ARGUMENTS_MAX);
        assert!(parser.shared.is_empty());
    }

    fn steps_for(chunks: &[&[u8]]) -> usize {
        let mut parser = RequestParser::new(RequestLimits::default());
        let mut buffer = BytesMut::new();
        for chunk in chunks {
            buffer.extend_from_slice(chunk);
            while let Ok(Some(_)) = parser.parse(&mut buffer, true) {}
        }
        parser.steps
    }

    #[test]
    fn a_pipeline_takes_steps_in_proportion_to_its_length() {
        let one = multibulk(&[b"LPUSH".to_vec(), b"queue".to_vec(), vec![b'v'; 100]]);
        let input = one.repeat(10_000);
        assert!(steps_for(&[&input]) <= 2 * input.len());
    }

    #[test]
    fn a_request_that_comes_byte_by_byte_takes_steps_in_proportion_to_its_length() {
        let long = vec![b'v'; 60_000];
        for input in [
            multibulk(&[b"SET".to_vec(), long.clone(), vec![b'x'; 1000]]),
            [&long[..], b"\n"].concat(),
            [b"PI\0", &long[..]].concat(),
            b"\r\n".repeat(20_000),
            b"*0\r\n".repeat(10_000),
        ] {
            let chunks: Vec<&[u8]> = input.chunks(1).collect();
            assert!(steps_for(&chunks) <= 6 * input.len());
        }
    }

    #[test]
    fn nested_arrays_are_refused_and_do_not_overflow() {
        let input = b"*1\r\n".repeat(10_000);
        assert_eq!(
            parse_whole(&input),
            (vec![], Some(ProtocolError::ExpectedDollar(b'*')))
        );
    }

    fn protocol_like() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..5)
                .prop_map(|arguments| multibulk(&arguments)),
            2 => "[a-z '\"\\\\x0-9]{0,30}\r?\n".prop_map(String::into_bytes),
            1 => "[*$][-0-9]{0,3}\r\n".prop_map(String::into_bytes),
            1 => any::<Vec<u8>>(),
        ];
        prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn arguments_come_out_as_they_went_in(
            arguments in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2000), 1..30)
        ) {
            prop_assert_eq!(parse_whole(&multibulk(&arguments)), (vec![arguments], None));
        }

        #[test]
        fn cuts_do_not_change_what_is_parsed(
            input in protocol_like(),
            sizes in prop::collection::vec(1_usize..50, 1..20),
            authenticated: bool,
        ) {
            let mut rest = input.as_slice();
            let mut chunks = Vec::new();
            for size in sizes.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (chunk, after) = rest.split_at((*size).min(rest.len()));
                chunks.push(chunk);
                rest = after;
            }
            prop_assert_eq!(
                parse_chunks(chunks, authenticated),
                parse_chunks([input.as_slice()], authenticated)
            );
        }

        #[test]
        fn no_bytes_make_the_parser_panic_or_return_more_than_came(input: Vec<u8>) {
            let (requests, _) = parse_whole(&input);
            let bytes: usize = requests.iter().flatten().map(Vec::len).sum();
            prop_assert!(bytes <= input.len());
        }
    }
}
