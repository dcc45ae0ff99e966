use proptest::prelude::*;

use super::*;

type Outcome = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

/// Parses what comes in these chunks, as a connection would.
fn parse_chunks<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, authenticated: bool) -> Outcome {
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
