//! WATCH: which changes fail an EXEC, and which do not. See `script` for the notation.

use crate::script::{play, play_to_quoin};
use crate::server::Server;

#[test]
fn nothing_changed_and_the_transaction_runs() {
    play(
        "a: RPUSH l x => :1|
         a: WATCH l none => +OK|
         b: LRANGE l 0 -1 => *1|$1|x|
         b: RPUSH other y => :1|
         a: MULTI => +OK|
         a: RPUSH l y => +QUEUED|
         a: EXEC => *1|:2|",
    );
}

#[test]
fn a_change_by_another_client_fails_it_once() {
    play(
        "a: WATCH l => +OK|
         b: RPUSH l x => :1|
         a: MULTI => +OK|
         a: RPUSH l y => +QUEUED|
         a: EXEC => *-1|
         a: LLEN l => :1|
         a: MULTI => +OK|
         a: RPUSH l y => +QUEUED|
         a: EXEC => *1|:2|",
    );
}

#[test]
fn a_failed_transaction_is_a_null_in_resp3() {
    play(
        "a: HELLO 3 => %7|*
         a: WATCH l => +OK|
         b: RPUSH l x => :1|
         a: MULTI => +OK|
         a: EXEC => _|",
    );
}

#[test]
fn an_own_change_fails_it_too() {
    play(
        "a: WATCH l => +OK|
         a: RPUSH l x => :1|
         a: MULTI => +OK|
         a: EXEC => *-1|",
    );
}

#[test]
fn a_change_behind_multi_fails_it() {
    play(
        "a: WATCH l => +OK|
         a: MULTI => +OK|
         a: LLEN l => +QUEUED|
         b: RPUSH l x => :1|
         a: EXEC => *-1|",
    );
}

#[test]
fn every_kind_of_change_fails_it() {
    // Each line: what creates the key, the key, what changes it.
    for (setup, change) in [
        ("RPUSH k a b", "LSET k 0 c"),
        ("RPUSH k a b", "LSET k 0 a"),
        ("RPUSH k a b", "LPOP k"),
        ("RPUSH k a b", "LTRIM k 0 -1"),
        ("RPUSH k a b", "LINSERT k BEFORE a c"),
        ("RPUSH k a b", "LREM k 0 a"),
        ("RPUSH k a b", "LMOVE k k LEFT RIGHT"),
        ("RPUSH k a b", "RPOPLPUSH k other"),
        ("RPUSH k a b", "EXPIRE k 100"),
        ("RPUSH k a b", "DEL k"),
        ("RPUSH k a b", "UNLINK k"),
        ("RPUSH k a b", "RENAME k other"),
        ("RPUSH k a b", "MOVE k 1"),
        ("RPUSH k a b", "SORT nothing STORE k"),
        ("RPUSH k a b", "FLUSHDB"),
        ("RPUSH k a b", "FLUSHALL"),
        ("RPUSH k a b", "SWAPDB 0 1"),
        ("RPUSH k a b", "BLPOP k 0"),
        ("RPUSH k a b", "PEXPIRE k -1"),
        ("ZADD k 1 a 2 b", "ZADD k 3 a"),
        ("ZADD k 1 a 2 b", "ZINCRBY k 1 a"),
        ("ZADD k 1 a 2 b", "ZREM k a"),
        ("ZADD k 1 a 2 b", "ZPOPMIN k"),
        ("ZADD k 1 a 2 b", "BZPOPMAX k 0"),
        ("ZADD k 1 a 2 b", "ZREMRANGEBYRANK k 0 0"),
        ("ZADD k 1 a 2 b", "ZUNIONSTORE k 1 k"),
        ("ZADD k 1 a 2 b", "ZINTERSTORE k 2 k none"),
        ("ZADD k 1 a 2 b", "ZRANGESTORE k none 0 -1"),
        ("SET k a", "SET k a"),
        ("SET k a", "APPEND k b"),
        ("SET k a", "GETEX k EX 100"),
        ("SET k a", "GETDEL k"),
        ("SET k 1", "INCRBY k 0"),
        ("SET k a", "SETRANGE k 0 a"),
        ("SETRANGE k 20000 a", "SETRANGE k 20000 a"),
        ("SETBIT k 7 1", "BITFIELD k SET u1 6 1"),
        ("PING", "BITFIELD k SET u1 6 0"),
        ("PING", "SETBIT k 0 0"),
        ("PING", "RPUSH k a"),
        ("PING", "ZADD k 1 a"),
        ("RPUSH other a", "COPY other k"),
        ("RPUSH other a", "RENAME other k"),
    ] {
        let script = format!(
            "a: {setup} => *
             b: WATCH k => +OK|
             a: {change} => *
             b: MULTI => +OK|
             b: PING => +QUEUED|
             b: EXEC => *-1|"
        );
        play(&script);
    }
}

#[test]
fn what_changes_nothing_does_not_fail_it() {
    for (setup, no_change) in [
        ("RPUSH k a b", "LRANGE k 0 -1"),
        ("RPUSH k a b", "LPUSHX none a"),
        ("RPUSH k a b", "LREM k 0 c"),
        ("RPUSH k a b", "LSET k 9 c"),
        ("RPUSH k a b", "ZADD k 1 m"),
        ("RPUSH k a b", "PERSIST k"),
        ("RPUSH k a b", "EXPIRE k 100 XX"),
        ("RPUSH k a b", "RENAMENX none k"),
        ("RPUSH k a b", "COPY none k"),
        ("RPUSH k a b", "SWAPDB 2 3"),
        ("RPUSH k a b", "MOVE none 1"),
        ("ZADD k 1 a", "ZADD k NX 2 a"),
        ("ZADD k 1 a", "ZADD k 1 a"),
        ("ZADD k 1 a", "ZREM k b"),
        ("SET k a", "SET k b NX"),
        ("SET k a", "SETNX k b"),
        ("SET k a", "MSETNX other b k c"),
        ("SET k a", "GETEX k PERSIST"),
        ("SETBIT k 7 1", "SETBIT k 7 1"),
        ("SETBIT k 7 1", "BITFIELD k SET u1 7 1 GET u8 0"),
        ("SET k a", "SETRANGE none 0 a"),
        ("PING", "GETDEL k"),
        ("PING", "DEL k"),
        ("PING", "FLUSHALL"),
        ("PING", "FLUSHDB"),
        ("PING", "SWAPDB 0 1"),
        ("PING", "EXPIRE k 10"),
        ("PING", "LPOP k"),
        ("PING", "BLPOP k 0.001"),
    ] {
        let script = format!(
            "a: {setup} => *
             b: WATCH k => +OK|
             a: {no_change} => *
             b: MULTI => +OK|
             b: PING => +QUEUED|
             b: EXEC => *1|+PONG|"
        );
        play(&script);
    }
}

#[test]
fn a_key_that_came_and_went_fails_it() {
    play(
        "a: WATCH k => +OK|
         b: RPUSH k x => :1|
         b: DEL k => :1|
         a: MULTI => +OK|
         a: EXEC => *-1|",
    );
}

#[test]
fn a_key_that_went_and_came_back_the_same_fails_it() {
    play(
        "a: RPUSH k x => :1|
         a: WATCH k => +OK|
         b: LPOP k => $1|x|
         b: RPUSH k x => :1|
         a: MULTI => +OK|
         a: EXEC => *-1|",
    );
}

#[test]
fn expiry_fails_it() {
    // Sent together, and with time to spare, because the key must exist when it is watched.
    play(
        "a>> RPUSH k x
         a>> PEXPIRE k 2000
         a>> WATCH k
         a< :1|
         a< :1|
         a< +OK|
         sleep 2100
         a: MULTI => +OK|
         a: EXEC => *-1|",
    );
}

#[test]
fn a_key_that_had_expired_already_fails_nothing() {
    play(
        "a: RPUSH k x => :1|
         a: PEXPIRE k 1 => :1|
         sleep 20
         a: WATCH k => +OK|
         sleep 200
         a: MULTI => +OK|
         a: PING => +QUEUED|
         a: EXEC => *1|+PONG|",
    );
}

#[test]
fn a_push_that_a_waiter_took_at_once_fails_it() {
    play(
        "a: WATCH l => +OK|
         b> BLPOP l 0
         c: RPUSH l x => :1|
         b< *2|$1|l|$1|x|
         a: MULTI => +OK|
         a: EXEC => *-1|",
    );
}

#[test]
fn a_destination_that_a_waiter_moved_to_fails_it() {
    play(
        "a: WATCH m => +OK|
         b> BLMOVE l m LEFT LEFT 0
         c: RPUSH l x => :1|
         b< $1|x|
         a: MULTI => +OK|
         a: EXEC => *-1|",
    );
}

#[test]
fn unwatch_exec_and_discard_forget() {
    play(
        "a: WATCH k => +OK|
         b: RPUSH k x => :1|
         a: UNWATCH => +OK|
         a: MULTI => +OK|
         a: EXEC => *0|
         a: WATCH k => +OK|
         b: RPUSH k x => :2|
         a: MULTI => +OK|
         a: DISCARD => +OK|
         a: MULTI => +OK|
         a: EXEC => *0|
         a: WATCH k => +OK|
         a: MULTI => +OK|
         a: EXEC => *0|
         b: RPUSH k x => :3|
         a: MULTI => +OK|
         a: EXEC => *0|
         a: UNWATCH => +OK|",
    );
}

#[test]
fn a_spoilt_transaction_says_so_whatever_was_watched() {
    play(
        "a: WATCH k => +OK|
         b: RPUSH k x => :1|
         a: MULTI => +OK|
         a: NOSUCH => -ERR unknown command*
         a: EXEC => -EXECABORT Transaction discarded because of previous errors.|
         a: MULTI => +OK|
         a: EXEC => *0|",
    );
}

#[test]
fn watch_and_unwatch_within_multi() {
    play(
        "a: WATCH k => +OK|
         a: MULTI => +OK|
         a: WATCH other => -ERR WATCH inside MULTI is not allowed|
         a: UNWATCH => +QUEUED|
         a: EXEC => *1|+OK|
         a: WATCH k => +OK|
         a: MULTI => +OK|
         a: UNWATCH => +QUEUED|
         b: RPUSH k x => :1|
         a: EXEC => *-1|",
    );
}

#[test]
fn a_key_is_watched_in_the_database_that_was_selected() {
    play(
        "a: SELECT 1 => +OK|
         a: WATCH k => +OK|
         a: SELECT 0 => +OK|
         b: RPUSH k x => :1|
         a: MULTI => +OK|
         a: EXEC => *0|
         a: SELECT 1 => +OK|
         a: WATCH k => +OK|
         a: SELECT 0 => +OK|
         b: SELECT 1 => +OK|
         b: RPUSH k x => :1|
         a: MULTI => +OK|
         a: EXEC => *-1|",
    );
}

#[test]
fn what_a_waiter_s_own_client_watches_is_told_of_its_pop() {
    play(
        "a: WATCH l => +OK|
         a> BLPOP l 0
         b: RPUSH l x => :1|
         a< *2|$1|l|$1|x|
         a: MULTI => +OK|
         a: EXEC => *-1|",
    );
}

#[test]
fn reset_forgets_what_was_watched() {
    play(
        "a: WATCH k => +OK|
         b: RPUSH k x => :1|
         a: RESET => +RESET|
         a: MULTI => +OK|
         a: EXEC => *0|",
    );
}

#[test]
fn a_key_watched_twice_is_watched_once() {
    play(
        "a: WATCH k k => +OK|
         a: WATCH k => +OK|
         a: MULTI => +OK|
         a: RPUSH k x => +QUEUED|
         a: EXEC => *1|:1|
         a: WATCH => -ERR wrong number of arguments for 'watch' command|",
    );
}

#[test]
fn a_key_that_had_expired_and_is_removed_fails_nothing_with_events_on_either() {
    play(
        "a: CONFIG SET notify-keyspace-events KEA => +OK|
         a: RPUSH k x => :1|
         a: PEXPIRE k 1 => :1|
         sleep 5
         a: WATCH k => +OK|
         sleep 300
         a: MULTI => +OK|
         a: PING => +QUEUED|
         a: EXEC => *1|+PONG|",
    );
    // With the moment of its removal for certain.
    play_to_quoin(
        &Server::start(),
        "a: CONFIG SET notify-keyspace-events KEA => +OK|
         a: DEBUG SET-ACTIVE-EXPIRE 0 => +OK|
         b: PSUBSCRIBE __keyevent@0__:expired => *
         a: RPUSH k x => :1|
         a: PEXPIRE k 1 => :1|
         sleep 20
         a: WATCH k => +OK|
         c: DEBUG SET-ACTIVE-EXPIRE 1 => +OK|
         b< *
         a: MULTI => +OK|
         a: PING => +QUEUED|
         a: EXEC => *1|+PONG|",
    );
}

#[test]
fn databases_that_are_exchanged_and_exchanged_back_fail_what_exists_in_either() {
    for (setup, watcher_database, answer) in [
        ("b: RPUSH k x => :1|", 0, "*-1|"),
        ("b: RPUSH k x => :1|", 1, "*-1|"),
        ("b: RPUSH other x => :1|", 0, "*1|+PONG|"),
        ("b: PING => +PONG|", 0, "*1|+PONG|"),
        ("b: RPUSH k x => :1|", 2, "*1|+PONG|"),
    ] {
        let script = format!(
            "{setup}
             a: SELECT {watcher_database} => +OK|
             a: WATCH k => +OK|
             b: SWAPDB 0 1 => +OK|
             b: SWAPDB 1 0 => +OK|
             a: MULTI => +OK|
             a: PING => +QUEUED|
             a: EXEC => {answer}"
        );
        play(&script);
    }
}

#[test]
fn a_key_that_an_exchange_brought_and_a_flush_took_fails_it() {
    for flush in ["FLUSHDB", "FLUSHALL"] {
        let script = format!(
            "b: SELECT 1 => +OK|
             b: RPUSH k x => :1|
             b: SELECT 0 => +OK|
             a: WATCH k => +OK|
             b: SWAPDB 0 1 => +OK|
             b: {flush} => +OK|
             a: MULTI => +OK|
             a: EXEC => *-1|"
        );
        play(&script);
    }
}

#[test]
fn databases_that_a_transaction_exchanges_twice_fail_it() {
    play(
        "b: RPUSH k x => :1|
         a: WATCH k => +OK|
         b: MULTI => +OK|
         b: SWAPDB 0 1 => +QUEUED|
         b: SWAPDB 0 1 => +QUEUED|
         b: EXEC => *2|+OK|+OK|
         a: MULTI => +OK|
         a: EXEC => *-1|",
    );
}

#[test]
fn of_very_many_watched_keys_an_exchange_fails_all() {
    let keys: String = (0..=10_000).map(|number| format!(" k{number}")).collect();
    for (keys, answer) in [(keys.as_str(), "*-1|"), (" k0", "*1|+PONG|")] {
        let script = format!(
            "a: WATCH{keys} => +OK|
             b: SWAPDB 0 1 => +OK|
             a: MULTI => +OK|
             a: PING => +QUEUED|
             a: EXEC => {answer}"
        );
        play_to_quoin(&Server::start(), &script);
    }
}
