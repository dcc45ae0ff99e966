//! How INFO errorstats and commandstats count scripts, compared with Redis.

use crate::servers::Servers;

/// Scripts that keep errors of their calls, end with them, or raise their own errors.
const SCRIPTS: &[&str] = &[
    "redis.pcall('INCR', 'text') return 1",
    "redis.pcall('INCR', 'text') redis.pcall('LPUSH', 'text', 1) return 1",
    "return redis.pcall('LPUSH', 'text', 1)",
    "return redis.call('LPUSH', 'text', 1)",
    "local e = redis.pcall('LPUSH', 'text', 1) redis.pcall('INCR', 'text') return e",
    "local e = redis.pcall('LPUSH', 'text', 1) return {err = e.err}",
    "local ok, e = pcall(redis.call, 'LPUSH', 'text', 1) return 1",
    "redis.pcall('NOSUCH') return 1",
    "return redis.pcall('NOSUCH')",
    "redis.pcall('GET') return 1",
    "redis.pcall('SUBSCRIBE', 'x') return 1",
    "redis.pcall('GET', {}) return 1",
    "return redis.error_reply('MY own')",
    "error('raised')",
    "error({err = 'MY own'})",
];

/// Lines of INFO without times.
fn counts(servers: &mut Servers, ours: bool) -> Vec<String> {
    let reply = servers.ask(ours, &[b"INFO", b"errorstats", b"commandstats", b"stats"]);
    let text = String::from_utf8_lossy(reply.bytes().unwrap()).into_owned();
    let lines = text.lines().filter_map(|line| {
        if line.starts_with("errorstat_") || line.starts_with("total_error_replies:") {
            return Some(line.to_owned());
        }
        let (name, values) = line.strip_prefix("cmdstat_")?.split_once(':')?;
        let values: Vec<&str> = values
            .split(',')
            .filter(|value| !value.starts_with("usec"))
            .collect();
        Some(format!("{name}: {}", values.join(" ")))
    });
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines
}

#[test]
fn errors_of_scripts_are_counted_as_in_redis() {
    let mut servers = Servers::start().unwrap();
    servers.reset();
    for script in SCRIPTS {
        let [ours, theirs] = [true, false].map(|ours| {
            servers.ask(ours, &[b"SET", b"text", b"x"]);
            servers.ask(ours, &[b"CONFIG", b"RESETSTAT"]);
            servers.ask(ours, &[b"EVAL", script.as_bytes(), b"0"]);
            counts(&mut servers, ours)
        });
        assert!(!theirs.is_empty());
        assert_eq!(ours, theirs, "{script}");
    }
}
