//! A client's bytes parse the same however the network splits them, never cause a panic, and never
//! make the parser return or reserve more than it should.

use bytes::{Bytes, BytesMut};
use quoin_base::limits::REQUEST_RESERVE_BYTES_MAX;
use quoin_resp::wire::ProtocolError;
use quoin_resp::wire::request::{RequestLimits, RequestParser};

/// Bytes at the front of the data that choose the chunks. The rest is what the client sends.
const CONTROL_BYTES: usize = 8;

/// Panics if the parser misbehaves on this data.
pub(crate) fn run(data: &[u8]) {
    let Some((control, input)) = data.split_first_chunk::<CONTROL_BYTES>() else {
        return;
    };
    let seed = u64::from_le_bytes(*control);
    let authenticated = seed & 1 == 1;
    let whole = parse(&[input], authenticated);
    let cut = parse(&chunks(input, seed), authenticated);
    assert_eq!(whole, cut, "the chunks change what is parsed");

    let argument_bytes: usize = whole.0.iter().flatten().map(Bytes::len).sum();
    assert!(argument_bytes <= input.len(), "more came out than went in");
    assert!(
        whole.0.iter().all(|request| !request.is_empty()),
        "a request without a command"
    );
}

fn parse(chunks: &[&[u8]], authenticated: bool) -> (Vec<Vec<Bytes>>, Option<ProtocolError>) {
    let mut parser = RequestParser::new(RequestLimits::default());
    let mut buffer = BytesMut::new();
    let mut requests = Vec::new();
    for chunk in chunks {
        let reserve_bytes = parser.bytes_to_reserve(&buffer);
        assert!(
            reserve_bytes <= buffer.len().max(REQUEST_RESERVE_BYTES_MAX),
            "an announced length alone takes memory"
        );
        buffer.reserve(reserve_bytes);
        buffer.extend_from_slice(chunk);
        loop {
            match parser.parse(&mut buffer, authenticated) {
                Ok(Some(request)) => requests.push(request.arguments),
                Ok(None) => break,
                Err(error) => return (requests, Some(error)),
            }
        }
    }
    (requests, None)
}

/// Cuts the input into chunks of 1 to 2^k bytes, k and the sizes chosen by the seed.
fn chunks(input: &[u8], seed: u64) -> Vec<&[u8]> {
    let mut state = seed | 1;
    let size_mask = (1_usize << (seed >> 1 & 15)) - 1;
    let mut chunks = Vec::new();
    let mut rest = input;
    while !rest.is_empty() {
        // xorshift: reproducible from the data alone.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let size = 1 + (usize::try_from(state >> 33).unwrap_or(0) & size_mask);
        let (chunk, after) = rest.split_at(size.min(rest.len()));
        chunks.push(chunk);
        rest = after;
    }
    chunks
}
