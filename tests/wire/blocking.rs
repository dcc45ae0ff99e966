//! Commands that wait: who gets what, and when. See `script` for how these are written.

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
