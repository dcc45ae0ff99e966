//! Refusals beyond `maxmemory`, compared with Redis's.

use crate::server::is_on_foundationdb;
use crate::servers::Servers;

const LIBRARY: &str = "#!lua name=library
redis.register_function('plain', function(keys) return redis.call('SET', keys[1], 1) end)
redis.register_function{function_name='oom', flags={'allow-oom'},
    callback=function(keys) return redis.call('SET', keys[1], 2) end}
redis.register_function{function_name='read', flags={'no-writes'},
    callback=function(keys) return redis.call('GET', keys[1]) end}";

/// What both servers get before the bound applies.
const BEFORE: &[&[&str]] = &[
    &["RPUSH", "list", "a", "b", "c", "d", "e"],
    &["SET", "text", "x"],
    &["XGROUP", "CREATE", "stream", "group", "0", "MKSTREAM"],
    &["XADD", "stream", "1-1", "field", "value"],
    &["FUNCTION", "LOAD", "REPLACE", LIBRARY],
    &["CONFIG", "RESETSTAT"],
];

/// What both get afterwards.
const BEYOND: &[&[&str]] = &[
    &["SET", "text", "y"],
    &["GET", "text"],
    &["RPUSH", "list", "f"],
    &["LPOP", "list"],
    &["LMOVE", "list", "list", "LEFT", "RIGHT"],
    &["INCR", "number"],
    &["EXPIRE", "text", "1000"],
    &["RENAME", "text", "renamed"],
    &[
        "XREADGROUP",
        "GROUP",
        "group",
        "consumer",
        "STREAMS",
        "stream",
        ">",
    ],
    &["XACK", "stream", "group", "1-1"],
    &["XADD", "stream", "2-1", "field", "value"],
    &["SCRIPT", "LOAD", "return 1"],
    &["EVAL", "return 1", "0"],
    &[
        "EVAL",
        "return redis.call('SET', KEYS[1], 1)",
        "1",
        "script",
    ],
    &[
        "EVAL",
        "return redis.pcall('SET', KEYS[1], 1)",
        "1",
        "script",
    ],
    &[
        "EVAL",
        "return redis.pcall('SET', KEYS[1], 1)['err']",
        "1",
        "script",
    ],
    // Not stopped half-way.
    &[
        "EVAL",
        "redis.call('LPOP', KEYS[1]) return redis.call('SET', KEYS[2], 1)",
        "2",
        "list",
        "script",
    ],
    &["EVAL", "#!lua\nreturn 1", "0"],
    &["EVAL", "#!lua flags=no-writes\nreturn 1", "0"],
    &[
        "EVAL",
        "#!lua flags=allow-oom\nreturn redis.call('SET', KEYS[1], 3)",
        "1",
        "script",
    ],
    &[
        "EVAL_RO",
        "return redis.call('GET', KEYS[1])",
        "1",
        "script",
    ],
    &["FCALL", "plain", "1", "function"],
    &["FCALL", "oom", "1", "function"],
    &["FCALL", "read", "1", "function"],
    &["FCALL_RO", "read", "1", "function"],
    &["FUNCTION", "LOAD", "REPLACE", LIBRARY],
    &["MULTI"],
    &["GET", "text"],
    &["PING"],
    &["EXEC"],
    &["MULTI"],
    &["DISCARD"],
    &["MULTI"],
    &["EXEC"],
    &["SUBSCRIBE"],
    &["NOSUCH"],
    &["DEL", "list"],
    &["FLUSHALL"],
];

fn bytes<'w>(words: &[&'w str]) -> Vec<&'w [u8]> {
    words.iter().map(|word| word.as_bytes()).collect()
}

fn both(servers: &mut Servers, words: &[&str]) -> [String; 2] {
    let words = bytes(words);
    [true, false].map(|ours| format!("{:?}", servers.ask(ours, &words)))
}

fn errors(servers: &mut Servers) -> [Vec<String>; 2] {
    [true, false].map(|ours| {
        let reply = servers.ask(ours, &[b"INFO", b"errorstats"]);
        let text = String::from_utf8_lossy(reply.bytes().unwrap()).into_owned();
        text.lines().map(str::to_owned).collect()
    })
}

#[test]
fn what_is_refused_beyond_maxmemory_is_what_redis_refuses() {
    if is_on_foundationdb() {
        // The size of a cluster's data is not known at once.
        return;
    }
    let mut servers = Servers::start().unwrap();
    servers.reset();
    for words in BEFORE {
        both(&mut servers, words);
    }
    let [ours, theirs] = both(&mut servers, &["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(ours, theirs);
    for words in BEYOND {
        let [ours, theirs] = both(&mut servers, words);
        assert_eq!(ours, theirs, "{words:?}");
    }
    let [ours, theirs] = errors(&mut servers);
    assert_eq!(ours, theirs);
    // Commands queued before the bound applies are refused as a whole.
    for words in [
        &["CONFIG", "SET", "maxmemory", "0"][..],
        &["RPUSH", "list", "a"],
    ] {
        let [ours, theirs] = both(&mut servers, words);
        assert_eq!(ours, theirs, "{words:?}");
    }
    for queued in [
        &["SET", "text", "x"][..],
        &[
            "EVAL",
            "return redis.call('SET', KEYS[1], 1)",
            "1",
            "script",
        ],
        &["EVAL", "#!lua\nreturn 1", "0"],
        &[
            "EVAL",
            "#!lua flags=allow-oom\nreturn redis.call('SET', KEYS[1], 1)",
            "1",
            "script",
        ],
        &["LPOP", "list"],
    ] {
        both(&mut servers, &["MULTI"]);
        both(&mut servers, queued);
        for connection in &mut servers.others() {
            let set = connection.command(&["CONFIG", "SET", "maxmemory", "1"]);
            assert_eq!(set.unwrap().error(), None);
        }
        let [ours, theirs] = both(&mut servers, &["EXEC"]);
        assert_eq!(ours, theirs, "{queued:?}");
        both(&mut servers, &["CONFIG", "SET", "maxmemory", "0"]);
    }
    for words in [
        &["CONFIG", "SET", "maxmemory", "1x"][..],
        &["CONFIG", "SET", "maxmemory-policy", "nosuch"],
        &["CONFIG", "SET", "maxmemory-policy", "NoEviction"],
        &["CONFIG", "GET", "maxmemory*"],
        &["SET", "text", "x"],
    ] {
        let [ours, theirs] = both(&mut servers, words);
        if words[1] != "GET" {
            assert_eq!(ours, theirs, "{words:?}");
        }
    }
    let policy = &bytes(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let refused = format!("{:?}", servers.ask(true, policy));
    assert!(
        refused.contains("queues must not lose elements"),
        "{refused}"
    );
}
