//! Commands that wait: who gets what, and when. See `script` for the notation.

use std::time::{Duration, Instant};

use crate::script::play;
use crate::server::Server;

#[test]
fn a_pop_that_finds_something_does_not_wait() {
    play(
        "a: RPUSH l x y z => :3|
         a: BLPOP l 0 => *2|$1|l|$1|x|
         a: BRPOP l 0 => *2|$1|l|$1|z|
         a: BLMOVE l m LEFT RIGHT 0 => $1|y|
         a: BRPOPLPUSH m l 0 => $1|y|
         a: BLMPOP 0 1 l LEFT => *2|$1|l|*1|$1|y|
         a: ZADD z 1 a 2 b 3.5 c => :3|
         a: BZPOPMIN z 0 => *3|$1|z|$1|a|$1|1|
         a: BZPOPMAX z 0 => *3|$1|z|$1|c|$3|3.5|
         a: BZMPOP 0 1 z MIN => *2|$1|z|*1|*2|$1|b|$1|2|
         a: DBSIZE => :0|",
    );
}

#[test]
fn keys_are_looked_at_in_the_order_in_which_they_stand() {
    play(
        "a: RPUSH l2 x => :1|
         a: RPUSH l1 y => :1|
         a: BLPOP l0 l1 l2 0 => *2|$2|l1|$1|y|
         a: BRPOP l0 l1 l2 0 => *2|$2|l2|$1|x|
         a: ZADD z2 1 x => :1|
         a: ZADD z1 2 y => :1|
         a: BZPOPMIN z0 z1 z2 0 => *3|$2|z1|$1|y|$1|2|
         a: RPUSH l2 x => :1|
         a: BLMPOP 0 3 l0 l1 l2 RIGHT => *2|$2|l2|*1|$1|x|",
    );
}

#[test]
fn a_key_of_another_type_is_refused_only_where_it_is_come_to() {
    play(
        "a: ZADD z 1 x => :1|
         a: RPUSH l a => :1|
         a: BLPOP l z 0 => *2|$1|l|$1|a|
         a: BLPOP l z 0 => -WRONGTYPE Operation against a key holding the wrong kind of value|
         a: BZPOPMIN z l 0 => *3|$1|z|$1|x|$1|1|
         a: RPUSH l a => :1|
         a: BZPOPMAX z l 0 => -WRONGTYPE Operation against a key holding the wrong kind of value|
         a: BLMOVE z l LEFT LEFT 0.001 => *-1|
         a: ZADD z 1 x => :1|
         a: BLMOVE z l LEFT LEFT 0 => -WRONGTYPE Operation against a key holding the wrong kind of value|
         a: BRPOPLPUSH l z 0 => -WRONGTYPE Operation against a key holding the wrong kind of value|",
    );
}

#[test]
fn arguments_that_make_no_sense_are_refused_before_anything_is_waited_for() {
    play(
        "a: BLPOP l x => -ERR timeout is not a float or out of range|
         a: BLPOP l -1 => -ERR timeout is negative|
         a: BRPOP l -0.5 => -ERR timeout is negative|
         a: BLPOP l => -ERR wrong number of arguments for 'blpop' command|
         a: BLMOVE l m LEFT UP 0 => -ERR syntax error|
         a: BLMOVE l m LEFT UP x => -ERR syntax error|
         a: BLMOVE l m LEFT RIGHT x => -ERR timeout is not a float or out of range|
         a: BRPOPLPUSH l m inf => -ERR timeout is out of range|
         7.0=> -ERR timeout is negative|
         a: BLMPOP 0 0 l LEFT => -ERR numkeys should be greater than 0|
         a: BLMPOP 0 1 l UP => -ERR syntax error|
         a: BLMPOP x 0 l LEFT => -ERR numkeys should be greater than 0|
         a: BLMPOP x 1 l LEFT => -ERR timeout is not a float or out of range|
         a: BZMPOP -1 1 z MIN => -ERR timeout is negative|
         a: BLMPOP 0 1 l LEFT COUNT 0 => -ERR count should be greater than 0|
         a: BZMPOP 0 1 z LEFT => -ERR syntax error|
         a: BZMPOP 0 2 z MIN => -ERR syntax error|
         a: BZPOPMIN z 1e400 => -ERR timeout is out of range|
         7.0=> -ERR timeout is negative|
         a: BZPOPMIN z -1e400 => -ERR timeout is negative|
         a: BZPOPMIN z nan => -ERR timeout is not a float or out of range|",
    );
}

#[test]
fn a_millisecond_is_not_for_ever() {
    let started = Instant::now();
    play(
        "a: BLPOP l 0.001 => *-1|
         a: BRPOP l 0.0001 => *-1|
         a: BZPOPMIN z 0.001 => *-1|
         a: BLMPOP 0.001 1 l LEFT => *-1|",
    );
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_timeout_of_a_fraction_is_waited_for() {
    let server = Server::start();
    let mut socket = server.connect();
    let started = Instant::now();
    assert_eq!(socket.run("BLPOP l 0.15"), "*-1\r\n");
    assert!(started.elapsed() >= Duration::from_millis(150));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_timeout_is_a_null_array_in_resp2_and_a_null_in_resp3() {
    play(
        "a: BLPOP l 0.001 => *-1|
         a: BRPOP l 0.001 => *-1|
         a: BLMOVE l m LEFT LEFT 0.001 => *-1|
         a: BRPOPLPUSH l m 0.001 => *-1|
         a: BLMPOP 0.001 1 l LEFT => *-1|
         a: BZPOPMIN z 0.001 => *-1|
         a: BZPOPMAX z 0.001 => *-1|
         a: BZMPOP 0.001 1 z MIN => *-1|
         a: HELLO 3 => %7|*
         a: BLPOP l 0.001 => _|
         a: BLMOVE l m LEFT LEFT 0.001 => _|
         a: BRPOPLPUSH l m 0.001 => _|
         a: BLMPOP 0.001 1 l LEFT => _|
         a: BZPOPMIN z 0.001 => _|
         a: BZMPOP 0.001 1 z MIN => _|",
    );
}

#[test]
fn within_multi_nothing_is_waited_for() {
    play(
        "a: MULTI => +OK|
         a: BLPOP l 0 => +QUEUED|
         a: BLMOVE l m LEFT LEFT 0 => +QUEUED|
         a: BRPOPLPUSH l m 0 => +QUEUED|
         a: BLMPOP 0 1 l LEFT => +QUEUED|
         a: BZPOPMIN z 0 => +QUEUED|
         a: BZMPOP 0 1 z MIN => +QUEUED|
         a: RPUSH l x => +QUEUED|
         a: BRPOP l 0 => +QUEUED|
         a: EXEC => *8|*-1|$-1|$-1|*-1|*-1|*-1|:1|*2|$1|l|$1|x|",
    );
}

#[test]
fn scores_are_numbers_in_resp3_for_those_who_waited_too() {
    play(
        "a: HELLO 3 => %7|*
         a> BZPOPMAX z 0
         b: ZADD z 1.5 m => :1|
         a< *3|$1|z|$1|m|,1.5|
         a> BZMPOP 0 1 z MAX COUNT 2
         b: ZADD z 1 m 2 n 3 o => :3|
         a< *2|$1|z|*2|*2|$1|o|,3|*2|$1|n|,2|",
    );
}

#[test]
fn those_who_wait_are_served_in_the_order_in_which_they_came() {
    play(
        "a> BLPOP l 0
         b> BRPOP other l 0
         c> BLMPOP 0 1 l LEFT COUNT 2
         d: RPUSH l 1 => :1|
         a< *2|$1|l|$1|1|
         b.
         d: RPUSH l 2 3 4 5 => :4|
         b< *2|$1|l|$1|5|
         c< *2|$1|l|*2|$1|2|$1|3|
         d: LRANGE l 0 -1 => *1|$1|4|",
    );
}

#[test]
fn one_push_serves_as_many_as_it_has_elements_for() {
    play(
        "a> BLPOP l 0
         b> BLPOP l 0
         c> BLPOP l 0
         d: RPUSH l 1 2 => :2|
         a< *2|$1|l|$1|1|
         b< *2|$1|l|$1|2|
         c.
         d: EXISTS l => :0|
         d: LPUSH l 3 => :1|
         c< *2|$1|l|$1|3|",
    );
}

#[test]
fn a_push_is_answered_with_the_length_before_those_who_wait_take_from_it() {
    play(
        "a> BLPOP l 0
         b: LPUSH l x y z => :3|
         a< *2|$1|l|$1|z|
         b: LRANGE l 0 -1 => *2|$1|y|$1|x|",
    );
}

#[test]
fn a_client_waits_for_a_key_of_one_type_only() {
    play(
        "a> BLPOP k 0
         b> BZPOPMIN k 0
         c: ZADD k 1 m => :1|
         b< *3|$1|k|$1|m|$1|1|
         a.
         c: RPUSH k x => :1|
         a< *2|$1|k|$1|x|",
    );
}

#[test]
fn a_key_named_twice_is_waited_for_once() {
    play(
        "a> BLPOP l l l 0
         b: RPUSH l 1 2 => :2|
         a< *2|$1|l|$1|1|
         b: LLEN l => :1|",
    );
}

#[test]
fn commands_behind_a_blocked_one_wait_for_it_in_order() {
    play(
        "a> BLPOP l 0
         a>> LLEN m
         a>> RPUSH m 1
         a>> PING
         b: LLEN m => :0|
         a.
         b: RPUSH m 0 => :1|
         b: RPUSH l x => :1|
         a< *2|$1|l|$1|x|
         a< :1|
         a< :2|
         a< +PONG|",
    );
}

#[test]
fn several_waits_in_one_pipeline_are_waited_for_one_after_the_other() {
    play(
        "a> BLPOP l 0
         a>> BLPOP l 0
         a>> BLMOVE l m LEFT LEFT 0.001
         b: RPUSH l 1 => :1|
         a< *2|$1|l|$1|1|
         a.
         b: RPUSH l 2 => :1|
         a< *2|$1|l|$1|2|
         a< *-1|",
    );
}

#[test]
fn a_wait_that_timed_out_takes_nothing_later() {
    play(
        "a: BLPOP l 0.01 => *-1|
         b: RPUSH l x => :1|
         a.
         b: LRANGE l 0 -1 => *1|$1|x|",
    );
}

#[test]
fn deleting_while_somebody_waits_is_no_wake_up() {
    play(
        "a> BLPOP l 0
         b: DEL l => :0|
         b: FLUSHDB => +OK|
         b: FLUSHALL => +OK|
         a.
         b: RPUSH l x => :1|
         a< *2|$1|l|$1|x|",
    );
}

#[test]
fn a_reply_that_is_switched_off_stays_off_for_one_who_waited() {
    play(
        "a>> CLIENT REPLY OFF
         a> BLPOP l 0
         b: RPUSH l x => :1|
         a: CLIENT REPLY ON => +OK|
         b: EXISTS l => :0|",
    );
}
