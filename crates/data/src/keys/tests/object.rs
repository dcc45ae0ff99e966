use super::*;

fn usage(bench: &Bench, options: &str) -> i64 {
    match bench.run(&format!("MEMORY USAGE {options}")) {
        Reply::Integer(bytes) => bytes,
        other => panic!("not a number: {other:?}"),
    }
}

#[test]
fn encodings_are_those_of_redis() {
    on_both_stores(|bench| {
        let digits = "9".repeat(20);
        let long = "x".repeat(65);
        bench.run(&format!(
            "MSET int -12 no-int 012 many {digits} long {}",
            &long[..45]
        ));
        bench.run("RPUSH list a b");
        bench.run("HSET hash a b");
        bench.run(&format!("HSET hashtable a {long}"));
        bench.run("SADD intset 1 -2");
        bench.run("SADD set 1 a");
        bench.run(&format!("SADD hashed 1 {long}"));
        bench.run("ZADD zset 1 a");
        bench.run(&format!("ZADD skiplist 1 {long}"));
        for place in 0..200 {
            let text = &long[..41];
            bench.run(&format!("RPUSH quicklist {text}"));
            bench.run(&format!("SADD many-members {text}{place}"));
            bench.run(&format!("SADD many-numbers {place}"));
            bench.run(&format!("ZADD many-scores {place} {place}"));
            bench.run(&format!("HSET many-fields {place} {place}"));
        }
        for (key, encoding) in [
            ("int", "int"),
            ("no-int", "embstr"),
            ("many", "embstr"),
            ("long", "raw"),
            ("list", "listpack"),
            ("quicklist", "quicklist"),
            ("hash", "listpack"),
            ("hashtable", "hashtable"),
            ("many-fields", "listpack"),
            ("intset", "intset"),
            ("many-numbers", "intset"),
            ("set", "listpack"),
            ("hashed", "hashtable"),
            ("many-members", "hashtable"),
            ("zset", "listpack"),
            ("skiplist", "skiplist"),
            ("many-scores", "skiplist"),
        ] {
            let reply = bench.run(&format!("OBJECT ENCODING {key}"));
            assert_eq!(reply, bulk(encoding), "{key}");
        }
    });
}

#[test]
fn object_tells_what_is_true_here() {
    on_both_stores(|bench| {
        bench.run("RPUSH l a");
        bench.run("ZADD z 1 a");
        assert_eq!(bench.run("object encoding z"), bulk("listpack"));
        assert_eq!(bench.run("OBJECT REFCOUNT l"), Reply::Integer(1));
        assert_eq!(bench.run("OBJECT IDLETIME l"), Reply::Integer(0));
        assert!(matches!(bench.run("OBJECT FREQ l"), Reply::Error(_)));
        for word in ["ENCODING", "REFCOUNT", "IDLETIME", "FREQ"] {
            assert_eq!(bench.run(&format!("OBJECT {word} nosuch")), Reply::Null);
        }
    });
}

#[test]
fn help_has_the_frame_of_redis() {
    let bench = Bench::embedded();
    for command in ["OBJECT", "MEMORY"] {
        let Reply::Array(lines) = bench.run(&format!("{command} HELP")) else {
            panic!("not an array");
        };
        assert!(
            matches!(lines.first(), Some(Reply::Simple(title)) if title.starts_with(command)),
            "{lines:?}"
        );
        assert_eq!(lines.last(), Some(&Reply::Simple("    Print this help.")));
    }
}

#[test]
fn memory_usage_grows_with_what_is_stored() {
    on_both_stores(|bench| {
        bench.run("RPUSH l a");
        let small = usage(bench, "l");
        bench.run_words(&[b"RPUSH", b"l", &split_value()]);
        let large = usage(bench, "l");
        assert!(large - small >= 250_000, "{small} {large}");
        assert!(large - small < 251_000, "{small} {large}");
        bench.run("ZADD z 1 a 2 b");
        let set = usage(bench, "z");
        bench.run("EXPIRE z 100");
        assert!(usage(bench, "z") > set);
    });
}

#[test]
fn memory_usage_is_reckoned_from_samples_of_long_values() {
    let bench = Bench::embedded();
    for _ in 0..30 {
        let mut words: Vec<&[u8]> = vec![b"RPUSH", b"l"];
        words.extend(std::iter::repeat_n(&b"0123456789"[..], 100));
        bench.run_words(&words);
    }
    let exact = usage(&bench, "l SAMPLES 0");
    for options in ["l", "l SAMPLES 10", "l SAMPLES 2999"] {
        let reckoned = usage(&bench, options);
        assert!((reckoned - exact).abs() < exact / 10, "{reckoned} {exact}");
    }
}

#[test]
fn refusals_of_memory_usage_are_those_of_redis() {
    let bench = Bench::embedded();
    for (command, line) in [
        ("MEMORY USAGE l SAMPLES", "ERR syntax error"),
        ("MEMORY USAGE l SAMPLES -1", "ERR syntax error"),
        ("MEMORY USAGE l FOO 1", "ERR syntax error"),
        (
            "MEMORY USAGE l SAMPLES x",
            "ERR value is not an integer or out of range",
        ),
    ] {
        assert_eq!(bench.run(command), error(line), "{command}");
    }
    assert_eq!(bench.run("MEMORY USAGE nosuch"), Reply::Null);
    assert_eq!(bench.run("MEMORY PURGE"), Reply::OK);
}
