//! The version of Redis that clients and scripts see: the setting `compatible-version`.

use crate::server::{Server, wait_until};

/// The version in all places where it is shown, and as a number.
fn told(server: &Server) -> (Vec<String>, String) {
    let mut socket = server.connect();
    let hello = socket.run("HELLO 2");
    let hello = hello.lines().nth(8).unwrap().to_owned();
    let info = socket.run("INFO server");
    let info = info
        .lines()
        .find_map(|line| line.strip_prefix("redis_version:"));
    let info = info.unwrap().to_owned();
    let of_script = socket.command(&["EVAL", "return redis.REDIS_VERSION", "0"]);
    let of_script = of_script.lines().nth(1).unwrap().to_owned();
    let drawn = socket.run("LOLWUT");
    let drawn = drawn.split_once("(Redis ver. ").unwrap().1;
    let drawn = drawn.split_once(')').unwrap().0.to_owned();
    let library = "#!lua name=l\nlocal v = redis.REDIS_VERSION redis.register_function('v', function() return v end)";
    socket.command(&["FUNCTION", "LOAD", library]);
    let of_library = socket.run("FCALL v 0").lines().nth(1).unwrap().to_owned();
    let number = socket.command(&["EVAL", "return redis.REDIS_VERSION_NUM", "0"]);
    let texts = vec![hello, info, of_script, drawn, of_library];
    (texts, number.trim().to_owned())
}

#[test]
fn all_that_tells_a_version_tells_the_one_of_the_setting() {
    for (flags, version, number) in [
        (&[][..], "7.2.6", 0x0007_0206),
        (&["--compatible-version", "7.2"], "7.2.6", 0x0007_0206),
        (&["--compatible-version", "8.4"], "8.4.0", 0x0008_0400),
    ] {
        let server = Server::start_with(flags);
        let (texts, told) = told(&server);
        assert_eq!(texts, [version; 5]);
        assert_eq!(told, format!(":{number}"));
    }
}

#[test]
fn a_version_that_there_is_not_is_refused_and_the_setting_is_fixed() {
    let folder = tempfile::tempdir().unwrap();
    let Err(log) = Server::start_in(folder.path(), &["--compatible-version", "9.0"]) else {
        panic!("it starts");
    };
    assert!(log.contains("7.2, 8.4"), "{log}");
    let server = Server::start();
    let mut socket = server.connect();
    let present = socket.run("CONFIG GET compatible-version");
    assert!(present.ends_with("$3\r\n7.2\r\n"), "{present}");
    let refusal = socket.run("CONFIG SET compatible-version 8.4");
    assert!(refusal.contains("immutable"), "{refusal}");
}

#[test]
fn commands_of_all_versions_work_and_are_listed_with_either() {
    for version in ["7.2", "8.4"] {
        let server = Server::start_with(&["--compatible-version", version]);
        let mut socket = server.connect();
        assert_eq!(socket.run("SET k a"), "+OK\r\n");
        assert_eq!(socket.run("SET k b IFEQ a"), "+OK\r\n");
        assert_eq!(socket.run("DELEX k IFEQ b"), ":1\r\n");
        let listed = socket.run("COMMAND LIST FILTERBY PATTERN delex");
        assert_eq!(listed, "*1\r\n$5\r\ndelex\r\n");
        let known = socket.run("COMMAND INFO delex");
        assert!(known.contains("delex"), "{known}");
        let documented = socket.run("COMMAND DOCS delex");
        assert!(documented.contains("IFDNE"), "{documented}");
    }
}

#[test]
fn fields_that_have_expired_are_counted_where_the_version_knows_them() {
    for (version, counted) in [("7.2", None), ("8.4", Some("\r\nexpired_subkeys:3\r\n"))] {
        let server = Server::start_with(&["--compatible-version", version]);
        let mut socket = server.connect();
        socket.run("HSET hash a 1 b 2 c 3 d 4");
        let removed = socket.run("HPEXPIREAT hash 1 FIELDS 1 a");
        assert_eq!(removed, "*1\r\n:2\r\n");
        socket.run("HPEXPIRE hash 1 FIELDS 2 b c");
        wait_until("the fields are removed", || {
            let stats = socket.run("INFO stats");
            match counted {
                Some(counted) => stats.contains(counted),
                None => !stats.contains("expired_subkeys") && socket.run("HLEN hash") == ":1\r\n",
            }
        });
    }
}

/// redis-cli and generated clients read options from there.
#[test]
fn documents_tell_the_options_of_the_version() {
    for (version, is_told) in [("7.2", false), ("8.4", true)] {
        let server = Server::start_with(&["--compatible-version", version]);
        let mut socket = server.connect();
        for (command, option) in [
            ("set", "IFEQ"),
            ("hscan", "NOVALUES"),
            ("client|kill", "MAXAGE"),
        ] {
            let documents = socket.run(&format!("COMMAND DOCS {command}"));
            assert_eq!(documents.contains(option), is_told, "{version} {command}");
        }
    }
}

/// Replies for 7.2 as in Redis 7.2, and those for 8.4 as in Redis 8.2. tests/differential compares
/// more of them.
#[test]
fn replies_that_have_changed_are_those_of_the_version() {
    let out_of_range = "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807\r\n";
    for (version, replies) in [
        (
            "7.2",
            [
                "*1\r\n*2\r\n$20\r\n13.36138933897018433\r\n$20\r\n38.11555639549629859\r\n",
                ":0\r\n",
                ":-1\r\n",
                ":0\r\n",
            ],
        ),
        (
            "8.4",
            [
                "*1\r\n*2\r\n$18\r\n13.361389338970184\r\n$16\r\n38.1155563954963\r\n",
                "-ERR syntax error\r\n",
                "-ERR value is not an integer or out of range\r\n",
                out_of_range,
            ],
        ),
    ] {
        let server = Server::start_with(&["--compatible-version", version]);
        let mut socket = server.connect();
        socket.run("GEOADD g 13.361389 38.115556 Palermo");
        let lines = [
            "GEOPOS g Palermo",
            "BITCOUNT missing 0",
            "BITPOS missing 1 x",
            "LREM missing -9223372036854775808 a",
        ];
        for (line, reply) in lines.into_iter().zip(replies) {
            assert_eq!(socket.run(line), reply, "{version} {line}");
        }
    }
}

/// docs/start/compatibility.md lists them.
#[test]
fn commands_that_are_not_planned_are_unknown_with_either() {
    for version in ["7.2", "8.4"] {
        let server = Server::start_with(&["--compatible-version", version]);
        let mut socket = server.connect();
        for command in ["JSON.SET", "FT.SEARCH", "BF.ADD", "TS.ADD", "VADD"] {
            let reply = socket.run(&format!("{command} k v"));
            let unknown =
                format!("-ERR unknown command '{command}', with args beginning with: 'k' 'v' \r\n");
            assert_eq!(reply, unknown);
        }
    }
}

/// Those of Redis 8.4: one after `multi`, the others at the end.
#[test]
fn a_client_is_listed_with_the_fields_of_the_version() {
    let server = Server::start();
    let mut socket = server.connect();
    let listed = socket.run("CLIENT INFO");
    assert!(!listed.contains("watch="), "{listed}");
    assert!(listed.ends_with(" lib-name= lib-ver=\n\r\n"), "{listed}");
    let server = Server::start_with(&["--compatible-version", "8.4"]);
    let mut socket = server.connect();
    let lines = ["SET k text\r\n", "WATCH a b a\r\n", "CLIENT INFO\r\n"];
    let replies = lines.map(|line| {
        socket.send(line);
        socket.reply()
    });
    let [set, watched, listed] = &replies;
    assert!(listed.contains(" multi=-1 watch=2 qbuf="), "{listed}");
    let (_, totals) = listed.split_once(" lib-ver= ").unwrap();
    let read: usize = lines.map(str::len).into_iter().sum();
    let written = set.len() + watched.len();
    let expected = format!("io-thread=0 tot-net-in={read} tot-net-out={written} tot-cmds=2");
    assert_eq!(totals.trim_end(), expected);
    socket.run("UNWATCH");
    assert!(socket.run("CLIENT LIST").contains(" watch=0 "));
}
