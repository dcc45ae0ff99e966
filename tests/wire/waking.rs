//! Commands that wait: what wakes them, and what does not. See `script` for the notation.

use crate::script::play;
use crate::server::{Server, request, wait_until};

#[test]
fn every_command_that_makes_a_list_wakes() {
    play(
        "a> BLPOP l 0
         b: RPUSH l 1 => :1|
         a< *2|$1|l|$1|1|
         a> BLPOP l 0
         b: LPUSH l 2 => :1|
         a< *2|$1|l|$1|2|
         b: RPUSH src 3 4 5 6 7 => :5|
         a> BLPOP l 0
         b: LMOVE src l LEFT LEFT => $1|3|
         a< *2|$1|l|$1|3|
         a> BLPOP l 0
         b: RPOPLPUSH src l => $1|7|
         a< *2|$1|l|$1|7|
         a> BLPOP l 0
         b: BRPOPLPUSH src l 0 => $1|6|
         a< *2|$1|l|$1|6|
         a> BLPOP l 0
         b: BLMOVE src l LEFT LEFT 0 => $1|4|
         a< *2|$1|l|$1|4|
         a> BLPOP l 0
         b: RENAME src l => +OK|
         a< *2|$1|l|$1|5|
         b: RPUSH src 8 => :1|
         a> BLPOP l 0
         b: RENAMENX src l => :1|
         a< *2|$1|l|$1|8|
         b: RPUSH src 9 => :1|
         a> BLPOP l 0
         b: COPY src l => :1|
         a< *2|$1|l|$1|9|
         a> BLPOP l 0
         b: SORT src STORE l => :1|
         a< *2|$1|l|$1|9|
         b: SELECT 1 => +OK|
         b: RPUSH l 10 => :1|
         a> BLPOP l 0
         b: MOVE l 0 => :1|
         a< *2|$1|l|$2|10|
         b: RPUSH l 11 => :1|
         a> BLPOP l 0
         b: SWAPDB 0 1 => +OK|
         a< *2|$1|l|$2|11|
         a> BLPOP l 0
         b: MULTI => +OK|
         b: SELECT 0 => +QUEUED|
         b: RPUSH l 12 => +QUEUED|
         b: EXEC => *2|+OK|:1|
         a< *2|$1|l|$2|12|",
    );
}

#[test]
fn restored_and_copied_keys_wake() {
    play(
        "a> BLPOP l 0
         b: SELECT 3 => +OK|
         b: RPUSH l 1 => :1|
         b: COPY l l DB 0 => :1|
         a< *2|$1|l|$1|1|
         a> BLPOP l2 0
         b: COPY l l2 DB 0 REPLACE => :1|
         a< *2|$2|l2|$1|1|",
    );
}

#[test]
fn every_command_that_makes_a_sorted_set_wakes() {
    play(
        "b: ZADD src 1 a => :1|
         a> BZPOPMIN z 0
         b: ZADD z 1 a => :1|
         a< *3|$1|z|$1|a|$1|1|
         a> BZPOPMIN z 0
         b: ZINCRBY z 2 a => $1|2|
         a< *3|$1|z|$1|a|$1|2|
         a> BZPOPMIN z 0
         b: ZADD z INCR 3 a => $1|3|
         a< *3|$1|z|$1|a|$1|3|
         a> BZPOPMIN z 0
         b: ZUNIONSTORE z 1 src => :1|
         a< *3|$1|z|$1|a|$1|1|
         a> BZPOPMIN z 0
         b: ZINTERSTORE z 1 src => :1|
         a< *3|$1|z|$1|a|$1|1|
         a> BZPOPMIN z 0
         b: ZDIFFSTORE z 2 src none => :1|
         a< *3|$1|z|$1|a|$1|1|
         a> BZPOPMIN z 0
         b: ZRANGESTORE z src 0 -1 => :1|
         a< *3|$1|z|$1|a|$1|1|
         a> BZPOPMIN z 0
         b: COPY src z => :1|
         a< *3|$1|z|$1|a|$1|1|
         a> BZMPOP 0 1 z MAX
         b: RENAME src z => +OK|
         a< *2|$1|z|*1|*2|$1|a|$1|1|
         b: ZADD src 1 a => :1|
         a> BZMPOP 0 1 z MAX
         b: MULTI => +OK|
         b: ZADD z 1 a => +QUEUED|
         b: ZADD z 5 b => +QUEUED|
         b: EXEC => *2|:1|:1|
         a< *2|$1|z|*1|*2|$1|b|$1|5|",
    );
}

#[test]
fn what_comes_and_goes_within_one_transaction_wakes_nobody() {
    play(
        "a> BLPOP l 0
         b: MULTI => +OK|
         b: RPUSH l x => +QUEUED|
         b: DEL l => +QUEUED|
         b: EXEC => *2|:1|:1|
         a.
         b: MULTI => +OK|
         b: RPUSH l x => +QUEUED|
         b: DEL l => +QUEUED|
         b: RPUSH l y => +QUEUED|
         b: RPUSH l z => +QUEUED|
         b: LPOP l => +QUEUED|
         b: EXEC => *5|:1|:1|:1|:2|$1|y|
         a< *2|$1|l|$1|z|",
    );
}

#[test]
fn what_is_replaced_within_one_transaction_by_another_type_wakes_nobody() {
    play(
        "a> BLPOP k 0
         b> BZPOPMIN k2 0
         c: MULTI => +OK|
         c: RPUSH k x => +QUEUED|
         c: DEL k => +QUEUED|
         c: ZADD k 1 m => +QUEUED|
         c: ZADD k2 1 m => +QUEUED|
         c: DEL k2 => +QUEUED|
         c: RPUSH k2 x => +QUEUED|
         c: EXEC => *6|:1|:1|:1|:1|:1|:1|
         a.
         b.
         c: DEL k k2 => :2|
         c: RPUSH k y => :1|
         a< *2|$1|k|$1|y|
         c: ZADD k2 2 n => :1|
         b< *3|$2|k2|$1|n|$1|2|",
    );
}

#[test]
fn a_key_in_front_that_has_become_of_another_type_is_an_error_once_another_is_ready() {
    play(
        "a> BLPOP k1 k2 0
         c: ZADD k1 1 m => :1|
         a.
         c: RPUSH k2 x => :1|
         a< -WRONGTYPE Operation against a key holding the wrong kind of value|
         7.0=> *2|$2|k2|$1|x|",
    );
}

#[test]
fn a_waiter_that_was_woken_for_nothing_keeps_its_place() {
    play(
        "a> BLPOP l 0
         b> BLPOP l 0
         c: MULTI => +OK|
         c: RPUSH l x => +QUEUED|
         c: LPOP l => +QUEUED|
         c: EXEC => *2|:1|$1|x|
         a.
         c: RPUSH l y => :1|
         a< *2|$1|l|$1|y|
         b.
         c: RPUSH l z => :1|
         b< *2|$1|l|$1|z|",
    );
}

#[test]
fn moves_wake_those_who_wait_behind_them() {
    play(
        "a> BLMOVE l1 l2 LEFT RIGHT 0
         b> BLMOVE l2 l3 LEFT RIGHT 0
         c> BRPOPLPUSH l3 l4 0
         d> BLPOP l4 0
         e: RPUSH l1 x => :1|
         a< $1|x|
         b< $1|x|
         c< $1|x|
         d< *2|$2|l4|$1|x|
         e: DBSIZE => :0|",
    );
}

#[test]
fn a_move_onto_its_own_list_gives_everyone_the_element() {
    play(
        "a> BRPOPLPUSH l l 0
         b> BLPOP l 0
         c: RPUSH l x => :1|
         a< $1|x|
         b< *2|$1|l|$1|x|
         c: EXISTS l => :0|",
    );
}

#[test]
fn a_move_to_a_key_of_another_type_fails_and_takes_nothing() {
    play(
        "c: ZADD z 1 m => :1|
         a> BLMOVE l z LEFT RIGHT 0
         b> BLPOP l 0
         c: RPUSH l x => :1|
         a< -WRONGTYPE Operation against a key holding the wrong kind of value|
         b< *2|$1|l|$1|x|",
    );
}

#[test]
fn a_key_of_another_type_that_goes_away_leaves_room_for_what_is_waited_for() {
    play(
        "c: ZADD k 1 m => :1|
         a> BLPOP other k2 0
         c: ZADD k2 1 m => :1|
         a.
         c: DEL k2 => :1|
         c: RPUSH k2 x => :1|
         a< *2|$2|k2|$1|x|",
    );
}

#[test]
fn expiry_of_a_key_of_another_type_does_not_end_the_wait() {
    play(
        "a> BLPOP k 0
         b: ZADD k 1 m => :1|
         b: PEXPIRE k 20 => :1|
         sleep 40
         a.
         b: RPUSH k x => :1|
         a< *2|$1|k|$1|x|",
    );
}

#[test]
fn clients_wait_in_the_database_that_they_selected() {
    play(
        "a: SELECT 1 => +OK|
         a> BLPOP l 0
         b> BLPOP l 0
         c: RPUSH l x => :1|
         b< *2|$1|l|$1|x|
         a.
         c: SELECT 1 => +OK|
         c: RPUSH l y => :1|
         a< *2|$1|l|$1|y|",
    );
}

#[test]
fn an_exchange_of_databases_wakes_those_of_both() {
    play(
        "a> BLPOP l 0
         b: SELECT 1 => +OK|
         b> BLPOP m 0
         c: RPUSH m x => :1|
         d: SELECT 1 => +OK|
         d: RPUSH l y => :1|
         a.
         d: SWAPDB 0 1 => +OK|
         a< *2|$1|l|$1|y|
         b< *2|$1|m|$1|x|",
    );
}

#[test]
fn a_restored_list_wakes() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("RPUSH l x");
    socket.send("DUMP l\r\n");
    let reply = socket.reply_bytes();
    let start = reply.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let payload = &reply[start..reply.len() - 2];
    let mut waiting = server.connect();
    waiting.send("BLPOP m 0\r\n");
    wait_until("it is blocked", || {
        socket
            .run("INFO clients")
            .contains("\r\nblocked_clients:1\r\n")
    });
    socket.send(request(&[b"RESTORE", &b"m"[..], b"0", payload]));
    assert_eq!(socket.reply(), "+OK\r\n");
    assert_eq!(waiting.reply(), "*2\r\n$1\r\nm\r\n$1\r\nx\r\n");
    assert_eq!(socket.run("EXISTS m"), ":0\r\n");
}
