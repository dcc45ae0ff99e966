//! CLIENT TRACKING. See `script` for how conversations are written.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::script::{play, play_to_quoin};
use crate::server::{Server, Socket, request, wait_until};

#[test]
fn a_client_is_told_once_of_a_change_of_what_it_has_read() {
    play(
        "a: HELLO 3 => %7|*
         a: CLIENT TRACKING ON => +OK|
         a: GET k => _|
         a: GET other => _|
         b: SET k 1 => +OK|
         a< >2|$10|invalidate|*1|$1|k|
         b: SET k 2 => +OK|
         a.
         a: MGET k l => *2|$1|2|_|
         b: MSET l 1 k 1 => +OK|
         a< >2|$10|invalidate|*1|$1|l|
         a< >2|$10|invalidate|*1|$1|k|
         b: DEL other => :0|
         a.",
    );
}

#[test]
fn what_commands_that_write_look_at_is_not_remembered() {
    play(
        "a: HELLO 3 => %7|*
         a: CLIENT TRACKING ON => +OK|
         a: GETDEL k => _|
         a: SET l 1 => +OK|
         a: INCR l => :2|
         b: MSET k 1 l 1 => +OK|
         a.",
    );
}

#[test]
fn every_kind_of_change_is_told() {
    play(
        "a: HELLO 3 => %7|*
         a: CLIENT TRACKING ON BCAST => +OK|
         b: RPUSH l x y z => :3|
         a< >2|$10|invalidate|*1|$1|l|
         b: LPOP l => $1|x|
         a< >2|$10|invalidate|*1|$1|l|
         b: RENAME l m => +OK|
         a< >2|$10|invalidate|*2|$1|l|$1|m|
         b: EXPIRE m 1000 => :1|
         a< >2|$10|invalidate|*1|$1|m|
         b: PERSIST m => :1|
         a< >2|$10|invalidate|*1|$1|m|
         b: PERSIST m => :0|
         b: LMOVE m n LEFT LEFT => $1|y|
         a< >2|$10|invalidate|*2|$1|m|$1|n|
         b: LPOP m => $1|z|
         a< >2|$10|invalidate|*1|$1|m|
         b: COPY n o => :1|
         a< >2|$10|invalidate|*1|$1|o|
         b: MOVE o 3 => :1|
         a< >2|$10|invalidate|*1|$1|o|
         b: HSET h f v => :1|
         a< >2|$10|invalidate|*1|$1|h|
         b: HDEL h none => :0|
         b: HDEL h f => :1|
         a< >2|$10|invalidate|*1|$1|h|
         b: SADD s x => :1|
         a< >2|$10|invalidate|*1|$1|s|
         b: SADD s x => :0|
         b: SUNIONSTORE t s => :1|
         a< >2|$10|invalidate|*1|$1|t|
         b: ZADD z 1 x => :1|
         a< >2|$10|invalidate|*1|$1|z|
         b: ZADD z 1 x => :0|
         b: SETBIT b 7 1 => :0|
         a< >2|$10|invalidate|*1|$1|b|
         b: PFADD p x => :1|
         a< >2|$10|invalidate|*1|$1|p|
         b: GETEX b PERSIST => $1|\u{1}|
         b: UNLINK b p none => :2|
         a< >2|$10|invalidate|*2|$1|b|$1|p|
         a.",
    );
}

#[test]
fn own_changes_are_told_after_the_reply_and_not_with_noloop() {
    play(
        "a: HELLO 3 => %7|*
         a: CLIENT TRACKING ON => +OK|
         a: GET k => _|
         a: SET k 1 => +OK|
         a< >2|$10|invalidate|*1|$1|k|
         a: GET k => $1|1|
         a: CLIENT TRACKING ON NOLOOP => +OK|
         a: SET k 2 => +OK|
         a.
         a: GET k => $1|2|
         b: SET k 3 => +OK|
         a< >2|$10|invalidate|*1|$1|k|",
    );
}

#[test]
fn with_noloop_a_pipeline_of_alike_commands_tells_its_client_nothing() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("HELLO 3");
    socket.run("CLIENT TRACKING ON BCAST NOLOOP");
    let lines = [
        "ZADD k 1 a",
        "ZADD k 2 b",
        "ZPOPMIN k 1",
        "ZPOPMIN k 1",
        "PING",
    ];
    let words = |line: &&str| request(&line.split(' ').collect::<Vec<_>>());
    socket.send(lines.iter().flat_map(words).collect::<Vec<u8>>());
    for expected in [
        ":1\r\n",
        ":1\r\n",
        "*1\r\n*2\r\n$1\r\na\r\n,1\r\n",
        "*1\r\n*2\r\n$1\r\nb\r\n,2\r\n",
        "+PONG\r\n",
    ] {
        assert_eq!(socket.reply(), expected);
    }
    assert_eq!(socket.run("PING"), "+PONG\r\n");
}

#[test]
fn in_a_pipeline_each_invalidation_follows_its_command() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("HELLO 3");
    socket.run("CLIENT TRACKING ON");
    let lines = ["GET k", "SET k 1", "GET k", "GET k", "SET k 2", "GET l"];
    let words = |line: &&str| request(&line.split(' ').collect::<Vec<_>>());
    socket.send(lines.iter().flat_map(words).collect::<Vec<u8>>());
    let invalidation = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n";
    for expected in [
        "_\r\n",
        "+OK\r\n",
        invalidation,
        "$1\r\n1\r\n",
        "$1\r\n1\r\n",
        "+OK\r\n",
        invalidation,
        "_\r\n",
    ] {
        assert_eq!(socket.reply(), expected);
    }
}

#[test]
fn invalidations_of_a_transaction_follow_its_reply() {
    play(
        "a: HELLO 3 => %7|*
         a: CLIENT TRACKING ON => +OK|
         a: MSET k 1 l 1 => +OK|
         a: GET k => $1|1|
         a: MULTI => +OK|
         a: GET l => +QUEUED|
         a: INCR k => +QUEUED|
         a: INCR l => +QUEUED|
         a: GET k => +QUEUED|
         a: EXEC => *4|$1|1|:2|:2|$1|2|
         a< >2|$10|invalidate|*1|$1|k|
         a< >2|$10|invalidate|*1|$1|l|
         a.
         b: SET l 3 => +OK|
         b: SET k 3 => +OK|
         a< >2|$10|invalidate|*1|$1|k|
         a: MULTI => +OK|
         a: GET k => +QUEUED|
         a: FLUSHDB => +QUEUED|
         a: EXEC => *2|$1|3|+OK|
         a< >2|$10|invalidate|_|",
    );
}

#[test]
fn keys_are_told_by_name_whatever_the_database() {
    play(
        "a: HELLO 3 => %7|*
         a: CLIENT TRACKING ON => +OK|
         a: GET k => _|
         b: SELECT 5 => +OK|
         b: SET k 1 => +OK|
         a< >2|$10|invalidate|*1|$1|k|",
    );
}

#[test]
fn with_prefixes_a_client_is_told_of_all_their_keys_a_message_each() {
    play(
        "a: HELLO 3 => %7|*
         a: CLIENT TRACKING ON BCAST PREFIX u: PREFIX a: => +OK|
         b: MSET u:2 1 u:1 1 other 1 a:9 1 u:2 2 => +OK|
         a< >2|$10|invalidate|*1|$3|a:9|
         a< >2|$10|invalidate|*2|$3|u:1|$3|u:2|
         a: CLIENT TRACKING ON BCAST PREFIX v: => +OK|
         b: SET v:1 1 => +OK|
         a< >2|$10|invalidate|*1|$3|v:1|
         b: SET u:1 2 => +OK|
         a< >2|$10|invalidate|*1|$3|u:1|
         a: SET u:1 3 => +OK|
         a< >2|$10|invalidate|*1|$3|u:1|
         a: CLIENT TRACKING ON BCAST NOLOOP => +OK|
         a: SET u:1 4 => +OK|
         a.
         b: MULTI => +OK|
         b: SET x 1 => +QUEUED|
         b: SET u:1 5 => +QUEUED|
         b: EXEC => *2|+OK|+OK|
         a< >2|$10|invalidate|*2|$3|u:1|$1|x|
         a< >2|$10|invalidate|*1|$3|u:1|
         a: CLIENT TRACKING OFF => +OK|
         b: SET u:1 6 => +OK|
         a.",
    );
}

#[test]
fn prefixes_must_not_overlap() {
    play(
        "a: CLIENT TRACKING ON BCAST PREFIX FOOBAR PREFIX FOO => -ERR Prefix 'FOOBAR' overlaps with another provided prefix 'FOO'. Prefixes for a single client must not overlap.|
         a: CLIENT TRACKING ON BCAST PREFIX FOO PREFIX BAR => +OK|
         a: CLIENT TRACKING ON BCAST PREFIX FO => -ERR Prefix 'FO' overlaps with an existing prefix 'FOO'. Prefixes for a single client must not overlap.|
         a: CLIENT TRACKING ON BCAST PREFIX BARB => -ERR Prefix 'BARB' overlaps with an existing prefix 'BAR'. Prefixes for a single client must not overlap.|
         a: CLIENT TRACKINGINFO => *6|$5|flags|*2|$2|on|$5|bcast|$8|redirect|:0|$8|prefixes|*2|$3|BAR|$3|FOO|
         a: CLIENT TRACKING OFF => +OK|
         a: CLIENT TRACKING ON BCAST PREFIX FOO => +OK|",
    );
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    play(
        "a: CLIENT TRACKING => -ERR wrong number of arguments for 'client|tracking' command|
         a: CLIENT TRACKING MAYBE => -ERR syntax error|
         a: CLIENT TRACKING ON NOTHING => -ERR syntax error|
         a: CLIENT TRACKING ON REDIRECT => -ERR syntax error|
         a: CLIENT TRACKING ON PREFIX => -ERR syntax error|
         a: CLIENT TRACKING OFF REDIRECT x => -ERR value is not an integer or out of range|
         a: CLIENT TRACKING ON REDIRECT 123456789 => -ERR The client ID you want redirect to does not exist|
         a: CLIENT TRACKING ON REDIRECT 0 => -ERR The client ID you want redirect to does not exist|
         a: CLIENT TRACKING ON REDIRECT @b REDIRECT @b => -ERR A client can only redirect to a single other client|
         a: CLIENT TRACKING ON PREFIX x => -ERR PREFIX option requires BCAST mode to be enabled|
         a: CLIENT TRACKING ON BCAST OPTIN => -ERR OPTIN and OPTOUT are not compatible with BCAST|
         a: CLIENT TRACKING ON OPTIN OPTOUT => -ERR You can't specify both OPTIN mode and OPTOUT mode|
         a: CLIENT CACHING YES => -ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled|
         a: CLIENT TRACKING ON => +OK|
         a: CLIENT CACHING YES => -ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.|
         a: CLIENT CACHING NO => -ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.|
         a: CLIENT CACHING MAYBE => -ERR syntax error|
         a: CLIENT TRACKING ON BCAST => -ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.|
         a: CLIENT TRACKING ON OPTIN => +OK|
         a: CLIENT TRACKING ON OPTOUT => -ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.|
         a: CLIENT TRACKING OFF => +OK|
         a: CLIENT TRACKING ON OPTOUT => +OK|
         a: CLIENT TRACKING ON OPTIN => -ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.|",
    );
}

#[test]
fn with_optin_only_what_follows_caching_is_remembered() {
    play(
        "a: HELLO 3 => %7|*
         a: CLIENT TRACKING ON OPTIN => +OK|
         a: GET k => _|
         b: SET k 1 => +OK|
         a.
         a: CLIENT CACHING YES => +OK|
         a: CLIENT TRACKINGINFO => %3|$5|flags|~3|$2|on|$5|optin|$11|caching-yes|$8|redirect|:0|$8|prefixes|*0|
         a: GET k => $1|1|
         a: GET l => _|
         a: CLIENT TRACKINGINFO => %3|$5|flags|~2|$2|on|$5|optin|$8|redirect|:0|$8|prefixes|*0|
         b: MSET l 1 k 2 => +OK|
         a< >2|$10|invalidate|*1|$1|k|
         a: CLIENT CACHING YES => +OK|
         a: PING => +PONG|
         a: GET k => $1|2|
         b: SET k 3 => +OK|
         a.
         a: CLIENT CACHING YES => +OK|
         a: MULTI => +OK|
         a: GET k => +QUEUED|
         a: GET l => +QUEUED|
         a: EXEC => *2|$1|3|$1|1|
         a: GET m => _|
         b: MSET m 1 l 2 k 4 => +OK|
         a< >2|$10|invalidate|*1|$1|l|
         a< >2|$10|invalidate|*1|$1|k|
         a: MULTI => +OK|
         a: CLIENT CACHING YES => +QUEUED|
         a: GET k => +QUEUED|
         a: EXEC => *2|+OK|$1|4|
         b: SET k 5 => +OK|
         a< >2|$10|invalidate|*1|$1|k|
         a.",
    );
}

#[test]
fn with_optout_what_follows_caching_is_not_remembered() {
    play(
        "a: HELLO 3 => %7|*
         a: CLIENT TRACKING ON OPTOUT => +OK|
         a: CLIENT CACHING NO => +OK|
         a: CLIENT TRACKINGINFO => %3|$5|flags|~3|$2|on|$6|optout|$10|caching-no|$8|redirect|:0|$8|prefixes|*0|
         a: GET k => _|
         a: GET l => _|
         b: MSET k 1 l 1 => +OK|
         a< >2|$10|invalidate|*1|$1|l|
         a.",
    );
}

#[test]
fn invalidations_are_redirected_to_a_subscriber() {
    play(
        "r: CLIENT ID => :@r|
         r: SUBSCRIBE __redis__:invalidate => *3|$9|subscribe|$20|__redis__:invalidate|:1|
         a: CLIENT GETREDIR => :-1|
         a: CLIENT TRACKING ON REDIRECT @r => +OK|
         a: CLIENT GETREDIR => :@r|
         a: CLIENT TRACKINGINFO => *6|$5|flags|*1|$2|on|$8|redirect|:@r|$8|prefixes|*0|
         a: GET k => $-1|
         a: SET k 1 => +OK|
         r< *3|$7|message|$20|__redis__:invalidate|*1|$1|k|
         a: GET k => $1|1|
         b: FLUSHALL => +OK|
         r< *3|$7|message|$20|__redis__:invalidate|$-1|
         a: CLIENT TRACKING OFF => +OK|
         a: CLIENT TRACKING ON BCAST REDIRECT @r => +OK|
         b: MSET y 1 x 1 => +OK|
         r< *3|$7|message|$20|__redis__:invalidate|*2|$1|x|$1|y|
         r.
         a.",
    );
}

#[test]
fn a_client_that_is_redirected_to_need_not_subscribe_with_resp3() {
    play(
        "r: HELLO 3 => %7|*
         a: CLIENT TRACKING ON REDIRECT @r => +OK|
         a: GET k => $-1|
         r.
         b: SET k 1 => +OK|
         r< >2|$10|invalidate|*1|$1|k|
         a: GET k => $1|1|
         r: HELLO 2 => *14|*
         b: SET k 2 => +OK|
         r.
         a.",
    );
}

#[test]
fn without_resp3_or_a_redirect_nothing_is_told() {
    play(
        "a: CLIENT TRACKING ON => +OK|
         a: GET k => $-1|
         b: SET k 1 => +OK|
         a.
         a: GET k => $1|1|
         a: HELLO 3 => %7|*
         b: SET k 2 => +OK|
         a< >2|$10|invalidate|*1|$1|k|",
    );
}

#[test]
fn a_client_is_told_that_the_one_it_redirects_to_is_gone() {
    play(
        "r: CLIENT ID => :@r|
         a: HELLO 3 => %7|*
         a: CLIENT TRACKING ON REDIRECT @r => +OK|
         a: MGET k l => *2|_|_|
         r!
         b: SET k 1 => +OK|
         a< >2|$21|tracking-redir-broken|*
         b: SET l 1 => +OK|
         a< >2|$21|tracking-redir-broken|*
         a: CLIENT TRACKINGINFO => %3|$5|flags|~2|$2|on|$15|broken_redirect|*
         a: CLIENT TRACKING ON => +OK|
         a: CLIENT TRACKINGINFO => %3|$5|flags|~1|$2|on|$8|redirect|:0|$8|prefixes|*0|",
    );
}

#[test]
fn a_reply_that_is_left_out_leaves_invalidations_in() {
    play(
        "a: HELLO 3 => %7|*
         a: CLIENT TRACKING ON => +OK|
         a: GET k => _|
         a>> CLIENT REPLY OFF
         sleep 30
         b: SET k 1 => +OK|
         a< >2|$10|invalidate|*1|$1|k|
         a: CLIENT REPLY ON => +OK|
         a: PING => +PONG|",
    );
}

#[test]
fn a_client_that_waited_is_told_of_its_change_after_its_reply() {
    play(
        "a: HELLO 3 => %7|*
         a: CLIENT TRACKING ON => +OK|
         a: LRANGE to 0 -1 => *0|
         a: LRANGE other 0 -1 => *0|
         a> BLMOVE from to LEFT LEFT 0
         b: RPUSH other x => :1|
         a< >2|$10|invalidate|*1|$5|other|
         b: RPUSH from x => :1|
         a< $1|x|
         a< >2|$10|invalidate|*1|$2|to|
         a.",
    );
}

#[test]
fn keys_that_expire_are_told() {
    play(
        "a: HELLO 3 => %7|*
         a: CLIENT TRACKING ON => +OK|
         b: SET k 1 PX 1 => +OK|
         c: HELLO 3 => %7|*
         c: CLIENT TRACKING ON BCAST => +OK|
         sleep 300
         c< >2|$10|invalidate|*1|$1|k|
         b: SET k 1 PX 300 => +OK|
         c< >2|$10|invalidate|*1|$1|k|
         a: GET k => $1|1|
         a< >2|$10|invalidate|*1|$1|k|
         c< >2|$10|invalidate|*1|$1|k|",
    );
}

#[test]
fn a_flush_makes_every_client_forget() {
    play(
        "a: HELLO 3 => %7|*
         a: CLIENT TRACKING ON => +OK|
         c: HELLO 3 => %7|*
         c: CLIENT TRACKING ON BCAST PREFIX x => +OK|
         a: WATCH k => +OK|
         a: GET k => _|
         b: FLUSHDB => +OK|
         a< >2|$10|invalidate|_|
         c< >2|$10|invalidate|_|
         b: SET k 1 => +OK|
         a.
         a: GET k => $1|1|
         b: FLUSHALL ASYNC => +OK|
         a< >2|$10|invalidate|_|
         c< >2|$10|invalidate|_|
         a: FLUSHALL => +OK|
         a< >2|$10|invalidate|_|",
    );
}

#[test]
fn databases_that_are_swapped_are_forgotten() {
    // Redis sends nothing, and clients keep values of other keys.
    play_to_quoin(
        &Server::start(),
        "a: HELLO 3 => %7|*
         a: CLIENT TRACKING ON => +OK|
         a: GET k => _|
         b: SWAPDB 0 1 => +OK|
         a< >2|$10|invalidate|_|",
    );
}

#[test]
fn tracking_that_begins_within_a_transaction_forgets_what_that_has_read() {
    play_to_quoin(
        &Server::start(),
        "a: HELLO 3 => %7|*
         a: MULTI => +OK|
         a: CLIENT TRACKING ON => +QUEUED|
         a: GET k => +QUEUED|
         a: EXEC => *2|+OK|_|
         a< >2|$10|invalidate|_|
         a: MULTI => +OK|
         a: CLIENT TRACKING ON => +QUEUED|
         a: EXEC => *1|+OK|
         a.",
    );
}

#[test]
fn what_scripts_read_is_remembered() {
    // As Redis 7.2 does it: 7.0 remembers the keys that the caller declares.
    play_to_quoin(
        &Server::start(),
        "a: HELLO 3 => %7|*
         a: CLIENT TRACKING ON => +OK|
         a: EVAL return(redis.call('get','undeclared')) 1 declared => _|
         b: MSET declared 1 undeclared 1 => +OK|
         a< >2|$10|invalidate|*1|$10|undeclared|
         a: EVAL_RO return(redis.call('get','undeclared')) 1 declared => $1|1|
         b: MSET declared 1 undeclared 2 => +OK|
         a< >2|$10|invalidate|*1|$10|undeclared|
         a: EVAL return(redis.call('set',KEYS[1],2)) 1 k => +OK|
         b: SET k 1 => +OK|
         a.
         a: GET k => $1|1|
         a: EVAL return(redis.call('set',KEYS[1],2)) 1 k => +OK|
         a< >2|$10|invalidate|*1|$1|k|",
    );
}

#[test]
fn reset_ends_tracking() {
    play(
        "a: HELLO 3 => %7|*
         a: CLIENT TRACKING ON => +OK|
         a: GET k => _|
         a: RESET => +RESET|
         a: HELLO 3 => %7|*
         b: SET k 1 => +OK|
         a.
         a: CLIENT TRACKINGINFO => %3|$5|flags|~1|$3|off|$8|redirect|:-1|$8|prefixes|*0|",
    );
}

fn figure(socket: &mut Socket, name: &str) -> usize {
    let info = socket.run("INFO");
    let line = info.split("\r\n").find_map(|line| {
        let (field, value) = line.split_once(':')?;
        (field == name).then_some(value)
    });
    line.unwrap().parse().unwrap()
}

#[test]
fn clients_and_keys_are_counted_and_shown() {
    let server = Server::start();
    let mut reader = server.connect();
    let mut broadcast = server.connect();
    let mut socket = server.connect();
    let id = socket.run("CLIENT ID");
    let id = id.trim_matches([':', '\r', '\n']).to_owned();
    assert_eq!(
        reader.run(&format!("CLIENT TRACKING ON REDIRECT {id}")),
        "+OK\r\n"
    );
    assert_eq!(
        broadcast.run("CLIENT TRACKING ON BCAST PREFIX p"),
        "+OK\r\n"
    );
    reader.run("MGET a b");
    let figures = [
        ("tracking_clients", 2),
        ("tracking_total_keys", 2),
        ("tracking_total_items", 2),
        ("tracking_total_prefixes", 1),
    ];
    for (name, expected) in figures {
        assert_eq!(figure(&mut socket, name), expected, "{name}");
    }
    assert!(reader.run("CLIENT INFO").contains(" flags=t "));
    assert!(reader.run("CLIENT INFO").contains(&format!(" redir={id} ")));
    let shown = broadcast.run("CLIENT INFO");
    assert!(
        shown.contains(" flags=tB ") && shown.contains(" redir=0 "),
        "{shown}"
    );
    assert!(socket.run("CLIENT INFO").contains(" redir=-1 "));
    socket.run("SET a 1");
    assert_eq!(figure(&mut socket, "tracking_total_keys"), 1);
    drop(broadcast);
    wait_until("the client is gone", || {
        figure(&mut socket, "tracking_clients") == 1
    });
    assert_eq!(figure(&mut socket, "tracking_total_prefixes"), 0);
    drop(reader);
    wait_until("no client is left", || {
        figure(&mut socket, "tracking_total_keys") == 0
    });
}

#[test]
fn a_full_table_forgets_random_keys_and_tells_it() {
    let server = Server::start_with(&["--tracking-table-max-keys", "10"]);
    let mut socket = server.connect();
    socket.run("HELLO 3");
    socket.run("CLIENT TRACKING ON");
    let invalidation = |reply: &str| reply.starts_with(">2\r\n$10\r\ninvalidate\r\n");
    let mut told = 0;
    for number in 0..30 {
        socket.send(request(&["GET", &format!("k{number}")]));
        assert_eq!(socket.reply(), "_\r\n");
        if number >= 10 {
            assert!(invalidation(&socket.reply()));
            told += 1;
        }
    }
    assert_eq!(told, 20);
    assert_eq!(figure(&mut socket, "tracking_total_keys"), 10);
    socket.run("CONFIG SET tracking-table-max-keys 3");
    for _ in 0..7 {
        assert!(invalidation(&socket.reply()));
    }
    assert_eq!(figure(&mut socket, "tracking_total_keys"), 3);
}

/// Reads while others write: in the end, no client holds an outdated value.
#[test]
fn no_client_keeps_a_value_that_has_changed() {
    const KEYS: usize = 5;
    let server = Server::start();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (server, is_over) = (&server, &is_over);
            scope.spawn(move || {
                let mut socket = server.connect();
                let ends = Instant::now() + Duration::from_millis(1500);
                for number in 0_u64.. {
                    let key = (number as usize) % KEYS;
                    socket.run(&format!("SET k{key} {writer}-{number}"));
                    if Instant::now() > ends {
                        break;
                    }
                }
                is_over.store(true, std::sync::atomic::Ordering::SeqCst);
            });
        }
        let readers = (0..3).map(|reader| {
            let (server, is_over) = (&server, &is_over);
            scope.spawn(move || {
                let mut cache = Cache::new(server);
                while !is_over.load(std::sync::atomic::Ordering::SeqCst) {
                    for key in 0..KEYS {
                        match reader {
                            0 => cache.read(&[key]),
                            1 => cache.read(&(0..KEYS).collect::<Vec<_>>()),
                            _ => cache.read_in_a_script(key),
                        }
                    }
                }
                cache
            })
        });
        let readers: Vec<_> = readers.collect();
        let caches: Vec<_> = readers.into_iter().map(|one| one.join().unwrap()).collect();
        // Writers have just ended, and their last changes are reported within a moment.
        std::thread::sleep(Duration::from_millis(200));
        let mut socket = server.connect();
        let values: Vec<String> = (0..KEYS)
            .map(|key| socket.run(&format!("GET k{key}")))
            .collect();
        for mut cache in caches {
            cache.take_invalidations();
            for (key, value) in values.iter().enumerate() {
                if let Some(held) = &cache.values[key] {
                    assert_eq!(held, value);
                }
            }
        }
    });
}

/// A client that caches what it reads.
struct Cache {
    socket: Socket,
    values: Vec<Option<String>>,
}

impl Cache {
    fn new(server: &Server) -> Self {
        let mut socket = server.connect();
        socket.run("HELLO 3");
        assert_eq!(socket.run("CLIENT TRACKING ON"), "+OK\r\n");
        Self {
            socket,
            values: vec![None; 5],
        }
    }

    /// Takes the next reply that is not an invalidation.
    fn reply(&mut self) -> String {
        loop {
            let reply = self.socket.reply();
            let Some(key) = reply.strip_prefix(">2\r\n$10\r\ninvalidate\r\n*1\r\n$2\r\nk") else {
                return reply;
            };
            let key: usize = key.trim().parse().unwrap();
            self.values[key] = None;
        }
    }

    /// Reads keys that it does not have, in one pipeline.
    fn read(&mut self, keys: &[usize]) {
        let keys: Vec<usize> = keys
            .iter()
            .copied()
            .filter(|key| self.values[*key].is_none())
            .collect();
        let mut pipeline = String::new();
        for key in &keys {
            write!(pipeline, "GET k{key}\r\n").unwrap();
        }
        self.socket.send(pipeline);
        for key in keys {
            let value = self.reply();
            self.values[key] = Some(value);
        }
        self.take_invalidations();
    }

    fn read_in_a_script(&mut self, key: usize) {
        if self.values[key].is_none() {
            let name = format!("k{key}");
            let script = "return redis.call('get', KEYS[1])";
            self.socket.send(request(&["EVAL_RO", script, "1", &name]));
            let value = self.reply();
            self.values[key] = Some(value);
        }
        self.take_invalidations();
    }

    fn take_invalidations(&mut self) {
        self.socket.send("PING\r\n");
        assert_eq!(self.reply(), "+PONG\r\n");
    }
}
