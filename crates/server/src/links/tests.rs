//! Two servers on one store: commands sent to one are run by the one that owns their key.

use bytes::BytesMut;
use proptest::prelude::*;

use super::frame::{put_request, put_response, read_request, read_response, take_frame};
use super::*;
use crate::fleet::{Client, Fleet, TestServer, wait_until};
use quoin_data::command::call::Invocation;
use quoin_engine::{Bundle, Work};
use quoin_resp::reply::Reply;
use quoin_resp::wire::encode::Protocol;

/// A key that the other of two servers owns.
fn key_of_other(server: &TestServer) -> String {
    let roster = server.state.membership.roster().unwrap();
    let owners = owners_of_blocks(roster.servers().iter());
    let is_other = |key: &String| {
        let owner = usize::from(owners[block_of(key.as_bytes())]);
        !roster.is_own(&roster.servers()[owner])
    };
    (0..)
        .map(|number| format!("key{number}"))
        .find(is_other)
        .unwrap()
}

fn ran_for_others(server: &TestServer) -> u64 {
    server.state.statistics.forwarded_here.get()
}

fn forwarded(server: &TestServer) -> u64 {
    server.state.executor.statistics().forwarded_commands.get()
}

/// Two servers with a link from the first, a client of the first, and a key of the second for which
/// both have just contended.
async fn linked(fleet: &Fleet) -> ([TestServer; 2], Client, String) {
    let servers = fleet.start_all().await;
    let key = key_of_other(&servers[0]);
    let mut client = Client::connect(servers[0].port()).await;
    let mut other = Client::connect(servers[1].port()).await;
    wait_until("there is a link", async || {
        let increment = format!("INCR {key}");
        tokio::join!(client.run(&increment), other.run(&increment));
        ran_for_others(&servers[1]) > 0
    })
    .await;
    client.run(&format!("DEL {key}")).await;
    (servers, client, key)
}

#[tokio::test]
async fn a_pop_is_run_by_the_owner_of_its_key() {
    let fleet = Fleet::new();
    let (servers, mut client, key) = linked(&fleet).await;
    client.run(&format!("RPUSH {key} a b c")).await;
    let before = ran_for_others(&servers[1]);
    assert_eq!(client.run(&format!("LPOP {key}")).await, "$1\r\na\r\n");
    assert_eq!(
        client.run(&format!("LPOP {key} 5")).await,
        "*2\r\n$1\r\nb\r\n$1\r\nc\r\n"
    );
    assert_eq!(client.run(&format!("LPOP {key}")).await, "$-1\r\n");
    assert_eq!(client.run(&format!("LPOP {key} 5")).await, "*-1\r\n");
    assert_eq!(ran_for_others(&servers[1]), before + 4);
    assert_eq!(forwarded(&servers[1]), 0, "an owner hands nothing on");
}

#[tokio::test]
async fn a_reply_has_the_protocol_of_its_client() {
    let fleet = Fleet::new();
    let (servers, mut client, key) = linked(&fleet).await;
    client.run(&format!("ZADD {key} 1.5 a 2 b 3 c")).await;
    let before = ran_for_others(&servers[1]);
    let popped = client.run(&format!("ZPOPMIN {key}")).await;
    assert_eq!(popped, "*2\r\n$1\r\na\r\n$3\r\n1.5\r\n");
    client.run("HELLO 3").await;
    let popped = client.run(&format!("ZPOPMIN {key} 2")).await;
    assert_eq!(
        popped,
        "*2\r\n*2\r\n$1\r\nb\r\n,2\r\n*2\r\n$1\r\nc\r\n,3\r\n"
    );
    assert_eq!(client.run(&format!("GETDEL {key}x")).await, "_\r\n");
    assert!(ran_for_others(&servers[1]) >= before + 2);
}

#[tokio::test]
async fn an_error_of_a_forwarded_command_is_the_clients_and_is_counted() {
    let fleet = Fleet::new();
    let (servers, mut client, key) = linked(&fleet).await;
    client.run(&format!("SET {key} text")).await;
    let before = servers[0].state.statistics.error_replies.get();
    let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
    assert_eq!(client.run(&format!("LPOP {key}")).await, wrong_type);
    assert_eq!(servers[0].state.statistics.error_replies.get(), before + 1);
}

#[tokio::test]
async fn a_transaction_is_run_whole_by_the_owner_of_what_it_pops_from() {
    let fleet = Fleet::new();
    let (servers, mut client, key) = linked(&fleet).await;
    let before = ran_for_others(&servers[1]);
    let queued = [
        "MULTI",
        "SET other 1",
        &format!("RPUSH {key} a"),
        &format!("LPOP {key}"),
    ];
    let ran = client
        .run(&[&queued[..], &["EXEC"]].concat().join("\r\n"))
        .await;
    assert!(ran.ends_with("*3\r\n+OK\r\n:1\r\n$1\r\na\r\n"), "{ran}");
    assert_eq!(ran_for_others(&servers[1]), before + 1);
    assert_eq!(client.run("GET other").await, "$1\r\n1\r\n");
}

#[tokio::test]
async fn a_transaction_that_watches_runs_where_it_watches() {
    let fleet = Fleet::new();
    let (servers, mut client, key) = linked(&fleet).await;
    let mut other = Client::connect(servers[1].port()).await;
    let before = ran_for_others(&servers[1]);
    for (is_disturbed, expected) in [(false, "*1\r\n$-1\r\n"), (true, "*-1\r\n")] {
        client.run(&format!("WATCH {key}")).await;
        if is_disturbed {
            other.run(&format!("RPUSH {key} a")).await;
        }
        let ran = client.run(&format!("MULTI\r\nLPOP {key}\r\nEXEC")).await;
        assert_eq!(ran, format!("+OK\r\n+QUEUED\r\n{expected}"));
    }
    assert_eq!(ran_for_others(&servers[1]), before);
}

#[tokio::test]
async fn a_client_that_waits_gets_what_any_server_pushes() {
    let fleet = Fleet::new();
    let (servers, mut client, key) = linked(&fleet).await;
    let mut other = Client::connect(servers[1].port()).await;
    let popped = format!("*2\r\n${}\r\n{key}\r\n$1\r\na\r\n", key.len());
    for pusher in [0, 1] {
        let waiters = servers[0].state.executor.waiters();
        client.send(&format!("BLPOP {key} 20")).await;
        wait_until("it waits", async || !waiters.is_empty()).await;
        match pusher {
            0 => {
                let mut neighbour = Client::connect(servers[0].port()).await;
                neighbour.run(&format!("RPUSH {key} a")).await;
            }
            _ => {
                other.run(&format!("RPUSH {key} a")).await;
            }
        }
        assert_eq!(client.until("a\r\n").await, popped, "pusher {pusher}");
    }
    assert_eq!(other.run(&format!("LLEN {key}")).await, ":0\r\n");
}

#[tokio::test]
async fn every_waiting_client_of_both_servers_gets_one_element() {
    let fleet = Fleet::new();
    let (servers, mut client, key) = linked(&fleet).await;
    let mut waiting = Vec::new();
    for number in 0..20 {
        let mut one = Client::connect(servers[number % 2].port()).await;
        one.send(&format!("BLPOP {key} 20")).await;
        waiting.push(one);
    }
    let of = |server: &TestServer| {
        let key = quoin_data::keyspace::key::ClientKey {
            database: 0,
            key: key.clone().into(),
        };
        server
            .state
            .executor
            .waiters()
            .count_waiting(std::iter::once(&key))
    };
    wait_until("all wait", async || {
        servers.iter().all(|one| of(one) == [10])
    })
    .await;
    let elements: Vec<String> = (100..120).map(|number| number.to_string()).collect();
    client
        .run(&format!("RPUSH {key} {}", elements.join(" ")))
        .await;
    let mut popped = Vec::new();
    for one in &mut waiting {
        let got = one.until("$3\r\n").await;
        popped.push(got.lines().last().unwrap().to_owned());
    }
    popped.sort();
    assert_eq!(popped, elements);
}

#[tokio::test]
async fn commands_run_here_once_their_owner_stops() {
    let fleet = Fleet::new();
    let (servers, mut client, key) = linked(&fleet).await;
    client.run(&format!("RPUSH {key} a b")).await;
    servers[1].state.shutdown.begin();
    assert_eq!(client.run(&format!("LPOP {key}")).await, "$1\r\na\r\n");
    assert_eq!(client.run(&format!("LPOP {key}")).await, "$1\r\nb\r\n");
}

#[tokio::test]
async fn commands_run_here_once_their_owner_is_dead() {
    let fleet = Fleet::new();
    let (mut servers, mut client, key) = linked(&fleet).await;
    client.run(&format!("RPUSH {key} a b")).await;
    servers[1].kill().await;
    // Commands in progress when it dies may have an unknown result.
    wait_until("a pop succeeds", async || {
        let popped = client.run(&format!("LPOP {key}")).await;
        assert!(
            popped.starts_with("-UNKNOWN") || popped.starts_with('$'),
            "{popped}"
        );
        popped == "$1\r\na\r\n"
    })
    .await;
    assert_eq!(client.run(&format!("LPOP {key}")).await, "$1\r\nb\r\n");
}

#[tokio::test]
async fn commands_run_here_while_their_owner_cannot_reach_the_store() {
    let fleet = Fleet::new();
    let (servers, mut client, key) = linked(&fleet).await;
    client.run(&format!("RPUSH {key} a")).await;
    servers[1].cut_off();
    assert_eq!(client.run(&format!("LPOP {key}")).await, "$1\r\na\r\n");
}

#[tokio::test]
async fn nothing_is_forwarded_when_the_setting_says_so() {
    let fleet = Fleet::new();
    let (servers, mut client, key) = linked(&fleet).await;
    assert_eq!(client.run("CONFIG SET forwarding no").await, "+OK\r\n");
    let before = ran_for_others(&servers[1]);
    client.run(&format!("LPOP {key}")).await;
    assert_eq!(ran_for_others(&servers[1]), before);
}

#[tokio::test]
async fn a_client_that_hears_of_its_own_changes_is_served_where_it_is() {
    let fleet = Fleet::new();
    let (servers, mut client, key) = linked(&fleet).await;
    client.run("HELLO 3").await;
    client.run("CLIENT TRACKING on").await;
    let before = ran_for_others(&servers[1]);
    client.run(&format!("LPOP {key}")).await;
    assert_eq!(ran_for_others(&servers[1]), before);
}

#[tokio::test]
async fn nobody_makes_a_link_without_the_secret() {
    let fleet = Fleet::new();
    let [server] = fleet.start_all().await;
    let mut client = Client::connect(server.port()).await;
    let answer = client
        .try_run(&format!("QUOIN.LINK {} abc", handshake::VERSION))
        .await
        .unwrap();
    assert!(answer.starts_with('+'), "{answer}");
    let proof = "0".repeat(64);
    let answer = client
        .try_run(&format!("QUOIN.LINK {} {proof}", handshake::VERSION))
        .await
        .unwrap();
    assert_eq!(answer, "-ERR this server shares another store\r\n");
    assert_eq!(client.try_run("PING").await, None);
    let mut client = Client::connect(server.port()).await;
    let answer = client.try_run("QUOIN.LINK 2 abc").await.unwrap();
    assert_eq!(answer, "-ERR this server uses another version of links\r\n");
}

fn invocation(database: u32, protocol: Protocol, words: &[Vec<u8>]) -> Invocation {
    let arguments = words
        .iter()
        .map(|word| Bytes::copy_from_slice(word))
        .collect();
    let mut invocation = Invocation::resolve(database, arguments).ok().unwrap();
    invocation.origin.forwarded_as = Some(protocol);
    invocation
}

fn commands() -> impl Strategy<Value = Vec<(u32, bool, Vec<Vec<u8>>)>> {
    let words = proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 2..6);
    proptest::collection::vec((any::<u32>(), any::<bool>(), words), 1..5)
}

/// Separate commands, or all of them as one transaction.
fn calls_of(commands: &[(u32, bool, Vec<Vec<u8>>)], is_transaction: bool) -> Vec<Call> {
    let invocations = commands.iter().map(|(database, is_new, words)| {
        let protocol = if *is_new {
            Protocol::Resp3
        } else {
            Protocol::Resp2
        };
        let words: Vec<Vec<u8>> = [b"DEL".to_vec()].into_iter().chain(words.clone()).collect();
        invocation(*database, protocol, &words)
    });
    match is_transaction {
        false => invocations.map(|one| Call::command(one, true)).collect(),
        true => {
            let bundle = Bundle {
                invocations: invocations.collect(),
                watched: Vec::new(),
                touched: Arc::default(),
            };
            vec![Call::transaction(bundle, true)]
        }
    }
}

fn shown(calls: &[Call]) -> Vec<String> {
    let each = calls.iter().map(|call| match &call.work {
        Work::Command(one) => format!("{:?}", (one.database, one.origin, &one.arguments)),
        Work::Transaction(bundle) => {
            let each = bundle.invocations.iter();
            let each = each.map(|one| (one.database, one.origin, &one.arguments));
            format!("{:?}", each.collect::<Vec<_>>())
        }
        _ => String::new(),
    });
    each.collect()
}

proptest! {
    #[test]
    fn a_request_is_read_as_it_was_written(
        commands in commands(),
        is_transaction in any::<bool>(),
        number in any::<u64>(),
    ) {
        let calls = calls_of(&commands, is_transaction);
        let mut output = BytesMut::from(&b"before"[..]);
        let mut frame = BytesMut::new();
        put_request(number, 77, &calls, &mut frame).unwrap();
        output.unsplit(frame);
        let mut input = output.split_off(6);
        let frame = take_frame(&mut input, usize::MAX).unwrap().unwrap();
        prop_assert!(input.is_empty());
        let request = read_request(frame).unwrap();
        prop_assert_eq!((request.number, request.reply_bytes_max), (number, 77));
        prop_assert_eq!(shown(&request.calls), shown(&calls));
    }

    #[test]
    fn a_response_is_read_as_it_was_written(number in any::<u64>(), bytes in any::<Vec<u8>>()) {
        let command = || (0, true, vec![b"a".to_vec()]);
        let mut calls = calls_of(&[command(), command()], true);
        calls.extend(calls_of(&[command()], false));
        let replies = [
            Reply::Array(vec![Reply::Bulk(bytes.clone().into()), Reply::Error("ERR no".to_owned())]),
            Reply::Null,
        ];
        let mut output = BytesMut::new();
        put_response(number, Some((&calls, &replies)), &mut output).unwrap();
        let frame = take_frame(&mut output, usize::MAX).unwrap().unwrap();
        let response = read_response(frame).unwrap();
        let mut encoded = BytesMut::new();
        quoin_resp::wire::encode::encode(&replies[0], Protocol::Resp3, &mut encoded);
        let read = response.replies.unwrap();
        let mut again = BytesMut::new();
        quoin_resp::wire::encode::encode(&read[0], Protocol::Resp3, &mut again);
        prop_assert_eq!(encoded, again);
        prop_assert_eq!(&read[1..], &[Reply::Null][..]);
        prop_assert_eq!(response.number, number);
    }

    #[test]
    fn any_bytes_are_a_frame_or_an_error(bytes in any::<Vec<u8>>()) {
        let frame = Bytes::from(bytes.clone());
        let _ = read_request(frame.clone());
        let _ = read_response(frame);
        let _ = take_frame(&mut BytesMut::from(&bytes[..]), 100);
    }

    #[test]
    fn a_frame_that_ends_early_is_waited_for(commands in commands(), at in any::<prop::sample::Index>()) {
        let mut output = BytesMut::new();
        put_request(1, 1, &calls_of(&commands, false), &mut output).unwrap();
        let mut input = BytesMut::from(&output[..at.index(output.len())]);
        prop_assert!(take_frame(&mut input, usize::MAX).unwrap().is_none());
    }
}

#[test]
fn a_frame_of_another_kind_is_an_error() {
    let mut input = BytesMut::from(&[0xff; 8][..]);
    assert!(take_frame(&mut input, 1000).is_err());
    let frame = Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 9, 0, 0]);
    assert!(read_request(frame).is_err());
}

#[test]
fn a_command_of_a_newer_version_is_not_run() {
    let mut call = calls_of(&[(0, true, vec![b"a".to_vec()])], false);
    if let Work::Command(one) = &mut call[0].work {
        one.arguments[0] = Bytes::from_static(b"LPOPNEW");
    }
    let mut output = BytesMut::new();
    put_request(7, 1, &call, &mut output).unwrap();
    let frame = take_frame(&mut output, usize::MAX).unwrap().unwrap();
    let request = read_request(frame).unwrap();
    assert_eq!((request.number, request.calls.len()), (7, 0));
}
