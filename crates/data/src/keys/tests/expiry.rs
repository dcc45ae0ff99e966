use super::*;
use quoin_engine::testing::START_MS;

#[test]
fn ttl_and_its_kin_tell_when_a_key_expires() {
    on_both_stores(|bench| {
        bench.run("RPUSH a 1");
        assert_eq!(bench.run("TTL a"), Reply::Integer(-1));
        assert_eq!(bench.run("PEXPIRETIME a"), Reply::Integer(-1));
        assert_eq!(bench.run("TTL nosuch"), Reply::Integer(-2));
        assert_eq!(bench.run("EXPIRETIME nosuch"), Reply::Integer(-2));
        assert_eq!(bench.run("PEXPIRE a 1500"), Reply::Integer(1));
        assert_eq!(bench.run("PTTL a"), Reply::Integer(1500));
        assert_eq!(bench.run("TTL a"), Reply::Integer(2));
        assert_eq!(bench.run("PEXPIRETIME a"), Reply::Integer(START_MS + 1500));
        assert_eq!(
            bench.run("EXPIRETIME a"),
            Reply::Integer(START_MS / 1000 + 2)
        );
        bench.clock.advance_ms(1001);
        assert_eq!(bench.run("TTL a"), Reply::Integer(0));
    });
}

#[test]
fn a_key_past_its_time_is_gone_at_once() {
    on_both_stores(|bench| {
        bench.run("RPUSH a 1");
        bench.run("EXPIRE a 1");
        bench.clock.advance_ms(999);
        assert_eq!(bench.run("EXISTS a"), Reply::Integer(1));
        bench.clock.advance_ms(1);
        assert_eq!(bench.run("EXISTS a"), Reply::Integer(0));
        assert_eq!(bench.run("KEYS *"), bulks(&[]));
        assert_eq!(bench.run("DBSIZE"), Reply::Integer(0));
        assert_eq!(bench.run("RANDOMKEY"), Reply::Null);
        assert_eq!(bench.run("DEL a"), Reply::Integer(0));
        assert_eq!(bench.run("LLEN a"), Reply::Integer(0));
        assert_eq!(bench.run("RPUSH a 2"), Reply::Integer(1));
        assert_eq!(bench.run("TTL a"), Reply::Integer(-1));
    });
}

#[test]
fn a_time_in_the_past_deletes() {
    on_both_stores(|bench| {
        for command in [
            "EXPIRE a -1",
            "PEXPIRE a 0",
            "EXPIREAT a 1",
            "PEXPIREAT a -5",
        ] {
            bench.run("RPUSH a 1");
            assert_eq!(bench.run(command), Reply::Integer(1));
            assert_eq!(bench.run("EXISTS a"), Reply::Integer(0));
        }
        assert_eq!(bench.run("EXPIRE a -1"), Reply::Integer(0));
    });
}

#[test]
fn conditions_decide_whether_expire_does_anything() {
    on_both_stores(|bench| {
        bench.run("RPUSH a 1");
        let cases = [
            ("EXPIRE a 100 XX", 0),
            ("EXPIRE a 100 GT", 0),
            ("EXPIRE a 100 LT", 1),
            ("EXPIRE a 100 NX", 0),
            ("EXPIRE a 100 GT", 0),
            ("EXPIRE a 100 LT", 0),
            ("EXPIRE a 200 GT XX", 1),
            ("EXPIRE a 300 LT", 0),
            ("EXPIRE a 150 lt xx", 1),
        ];
        for (command, expected) in cases {
            assert_eq!(bench.run(command), Reply::Integer(expected), "{command}");
        }
        assert_eq!(bench.run("TTL a"), Reply::Integer(150));
        assert_eq!(bench.run("PERSIST a"), Reply::Integer(1));
        assert_eq!(bench.run("PERSIST a"), Reply::Integer(0));
        assert_eq!(bench.run("TTL a"), Reply::Integer(-1));
        assert_eq!(bench.run("EXPIRE a 10 NX"), Reply::Integer(1));
    });
}

#[test]
fn refusals_of_expire_are_those_of_redis() {
    let bench = Bench::embedded();
    bench.run("RPUSH a 1");
    let cases = [
        ("EXPIRE a 1 FOO", "ERR Unsupported option FOO"),
        ("EXPIRE a x FOO", "ERR Unsupported option FOO"),
        ("EXPIRE a x", "ERR value is not an integer or out of range"),
        (
            "EXPIRE a 1 NX XX",
            "ERR NX and XX, GT or LT options at the same time are not compatible",
        ),
        (
            "EXPIRE a 1 GT LT",
            "ERR GT and LT options at the same time are not compatible",
        ),
        (
            "EXPIRE a 9223372036854775807",
            "ERR invalid expire time in 'expire' command",
        ),
        (
            "PEXPIRE a 9223372036854775807",
            "ERR invalid expire time in 'pexpire' command",
        ),
        ("EXPIREAT nosuch 9223372036854775", ""),
        (
            "EXPIREAT a -9223372036854776",
            "ERR invalid expire time in 'expireat' command",
        ),
    ];
    for (command, expected) in cases {
        let expected = if expected.is_empty() {
            Reply::Integer(0)
        } else {
            error(expected)
        };
        assert_eq!(bench.run(command), expected, "{command}");
    }
}

#[test]
fn an_element_pushed_later_does_not_change_the_expiry() {
    on_both_stores(|bench| {
        bench.run("RPUSH a 1");
        bench.run("EXPIRE a 10");
        bench.run("RPUSH a 2");
        assert_eq!(bench.run("TTL a"), Reply::Integer(10));
        bench.clock.advance_ms(10_000);
        assert_eq!(bench.run("LLEN a"), Reply::Integer(0));
    });
}

#[test]
fn the_farthest_time_is_rounded_as_any_other() {
    on_both_stores(|bench| {
        bench.run("RPUSH a 1");
        for (at_ms, expected) in [
            ("9223372036854775807", 9_223_372_036_854_776),
            ("9223372036854775500", 9_223_372_036_854_776),
            ("9223372036854775499", 9_223_372_036_854_775),
        ] {
            bench.run(&format!("PEXPIREAT a {at_ms}"));
            assert_eq!(
                bench.run("EXPIRETIME a"),
                Reply::Integer(expected),
                "{at_ms}"
            );
        }
    });
}

#[test]
fn an_unknown_condition_is_shown_up_to_a_zero_byte() {
    let bench = Bench::embedded();
    for (option, shown) in [("a\0b", "a"), ("\0b", "")] {
        let words = ["EXPIRE", "l", "1", option].map(str::as_bytes);
        assert_eq!(
            bench.run_words(&words),
            error(&format!("ERR Unsupported option {shown}"))
        );
    }
}
