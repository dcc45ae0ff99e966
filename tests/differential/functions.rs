//! Libraries of functions, loaded and called at random, compared with Redis's to the byte; and
//! dumps that each server takes from the other.

use std::io::Write;

use crate::keys::Step;
use crate::number_of_environment;
use crate::resp::Words;
use crate::servers::{Batch, Servers};
use crate::words::Dice;

/// Commands that are compared.
const COMMANDS: u64 = 3_000;

const FIRST_LINES: &[&str] = &[
    "#!lua name=a",
    "#!lua name=a",
    "#!lua name=b",
    "#!lua name=b",
    "#!LUA NAME=c",
    "#!lua  name=\"c\"",
    "#!lua name=a name=b",
    "#!lua name=",
    "#!lua name=a-b",
    "#!lua",
    "#!lua b=1 name=a",
    "#!lua name='a",
    "#!py name=a",
    "#! name=a",
    "lua name=a",
];

/// `$` becomes the name of a function.
const REGISTRATIONS: &[&str] = &[
    "redis.register_function('$', function(keys, args) return {keys, args} end)",
    "redis.register_function('$', function(keys, args) return redis.call('SET', keys[1], args[1]) end)",
    "redis.register_function('$', function(keys, args) return redis.call('GET', keys[1]) end)",
    "redis.register_function{function_name='$', callback=function(keys) \
     return redis.call('GET', keys[1]) end, flags={'no-writes'}, description='reads'}",
    "redis.register_function{function_name='$', callback=function(keys) \
     return redis.call('SET', keys[1], 1) end, flags={'no-writes', 'allow-oom', 'allow-stale'}}",
    "redis.register_function{function_name='$', callback=function() \
     redis.setresp(3) return redis.call('HGETALL', 'h') end, \
     flags={'ALLOW-CROSS-SLOT-KEYS', 'no-cluster'}}",
    "redis.register_function('$', function() error('raised') end)",
    "redis.register_function('$', function() error({err='MY own'}) end)",
    "redis.register_function('$', function() return redis.pcall('SELECT', 'x') end)",
    "redis.register_function('$', function() return KEYS end)",
    "redis.register_function('$', function() new = 1 end)",
    "redis.register_function('$', function() return redis.register_function end)",
    "local r = redis redis.register_function('$', function() return r.register_function('x') end)",
    "local r = redis redis.register_function('$', function() return r.call('GET', 'x') end)",
    "local n = 0 redis.register_function('$', function() n = n + 1 return n end)",
    "redis.register_function('$', function() return _G.string.format('%d', 7) end)",
    "redis.register_function('$', string.format)",
    "redis.register_function('$', 7)",
    "redis.register_function('$')",
    "redis.register_function()",
    "redis.register_function('$', function() end, 3)",
    "redis.register_function({function_name='$'})",
    "redis.register_function({callback=function() end})",
    "redis.register_function{function_name='$', callback=1}",
    "redis.register_function{function_name='$', callback=function() end, flags=1}",
    "redis.register_function{function_name='$', callback=function() end, flags={'nope'}}",
    "redis.register_function{function_name='$', callback=function() end, flags={{}}}",
    "redis.register_function{function_name={}, callback=function() end}",
    "redis.register_function{function_name='$', callback=function() end, description={}}",
    "redis.register_function{function_name='$', callback=function() end, other=1}",
    "redis.register_function{[{}]='$'}",
    "redis.register_function(7, function() return 7 end)",
    "redis.register_function('$ $', function() end)",
    "redis.register_function('$', function() end) redis.register_function('$', function() end)",
    "redis.call('GET', 'x')",
    "redis.setresp(3)",
    "redis.log(redis.LOG_DEBUG, 'x')",
    "redis.log('x')",
    "return redis.REDIS_VERSION_NUMB",
    "return math.random()",
    "return pcall",
    "_G.x = 1",
    "x = 1",
    "local x = ('x'):rep(3) redis.register_function('$', function() return x end)",
    "local x = nil + 1",
    "this is not Lua",
    "redis.register_function('$', function(keys, args) return #keys .. #args end) return 1",
    "",
];

/// Redis 7.0 may end either of two functions that differ only in case, so only the first three are
/// registered.
const FUNCTIONS: &[&str] = &["f", "g", "h", "F", "7", "nosuch"];

fn pick<'w>(dice: &mut Dice, words: &[&'w str]) -> &'w str {
    words[dice.below(words.len())]
}

fn code(dice: &mut Dice) -> String {
    let first = pick(dice, FIRST_LINES);
    // Redis lists the functions of a library in any order, so usually there is one.
    let count = if dice.one_in(6) { 2 } else { 1 };
    let registrations: Vec<String> = (0..count)
        .map(|_| {
            let name = pick(dice, &FUNCTIONS[..3]);
            pick(dice, REGISTRATIONS).replace('$', name)
        })
        .collect();
    match dice.one_in(40) {
        true => first.to_owned(),
        false => format!("{first}\n{}", registrations.join("\n")),
    }
}

fn command(dice: &mut Dice) -> Vec<String> {
    let words: Vec<&str> = match dice.below(14) {
        0..=4 => {
            let option = pick(dice, &["REPLACE", "REPLACE", "replace", "NOPE"]);
            let code = code(dice);
            let mut words = vec!["FUNCTION".to_owned(), "LOAD".to_owned()];
            if dice.one_in(2) {
                words.push(option.to_owned());
            }
            words.push(code);
            return words;
        }
        5..=9 => {
            let command = pick(dice, &["FCALL", "FCALL", "FCALL_RO"]);
            let count = pick(dice, &["1", "1", "1", "0", "2", "-1", "3", "x"]);
            vec![command, pick(dice, FUNCTIONS), count, "k", "v"]
        }
        10 => vec!["FUNCTION", "DELETE", pick(dice, &["a", "b", "c", "A"])],
        11 => vec![
            "FUNCTION",
            "LIST",
            "LIBRARYNAME",
            pick(dice, &["a", "B", "nosuch"]),
        ],
        12 => match dice.below(6) {
            0 => vec!["FUNCTION", "LIST", "WITHCODE", "WITHCODE"],
            1 => vec!["FUNCTION", "LIST", "LIBRARYNAME"],
            2 => vec!["FUNCTION", "FLUSH", pick(dice, &["SYNC", "ASYNC", "NOPE"])],
            3 => vec!["FUNCTION", "FLUSH", "SYNC", "SYNC"],
            4 => vec!["FUNCTION", "RESTORE", "x", pick(dice, &["FLUSH", "NOPE"])],
            _ => vec!["FUNCTION", "KILL"],
        },
        _ => vec!["FUNCTION", "STATS"],
    };
    words.into_iter().map(str::to_owned).collect()
}

fn started() -> Option<Servers> {
    match Servers::start() {
        Ok(servers) => Some(servers),
        Err(error) if std::env::var_os("QUOIN_TEST_REQUIRE_REDIS").is_none() => {
            // Written past the capture of a passing test's output.
            let _ = writeln!(std::io::stderr(), "nothing is compared with Redis: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Whether a reply of FUNCTION LIST may have its functions in any order.
fn has_many_functions(text: &str) -> bool {
    text.matches("description").count() > 1
}

#[test]
fn functions_answer_as_those_of_redis_do() {
    let Some(mut servers) = started() else {
        return;
    };
    servers.reset();
    let first = number_of_environment("QUOIN_TEST_SEED").unwrap_or(1);
    let mut dice = Dice::new(first);
    let mut history = Vec::new();
    for _ in 0..COMMANDS {
        let words = command(&mut dice);
        history.push(words.clone());
        let words: Words = words.into_iter().map(String::into_bytes).collect();
        let batch = Batch {
            connection: dice.below(2),
            steps: vec![Step::Command(words)],
        };
        if let Some(mismatch) = servers.compare(&batch)
            && !has_many_functions(&mismatch.text)
        {
            let last = history.iter().rev().take(5).rev();
            let last: Vec<String> = last.map(|words| words.join(" ")).collect();
            let last = last.join("\n");
            panic!("QUOIN_TEST_SEED={first}: {last}\n{}", mismatch.text);
        }
    }
}

#[test]
fn each_server_takes_the_dump_of_the_other() {
    let Some(mut servers) = started() else {
        return;
    };
    servers.reset();
    let long = format!("return '{}'", "long ".repeat(5_000));
    let one = "#!lua name=one\nredis.register_function('f', function() return 1 end)";
    let two = format!("#!lua name=two\nredis.register_function('g', function() {long} end)");
    for from_ours in [true, false] {
        for (library, code) in [("one", one), ("two", &two)] {
            let loaded = servers.ask(
                from_ours,
                &[b"FUNCTION", b"LOAD", b"REPLACE", code.as_bytes()],
            );
            assert_eq!(loaded.bytes(), Some(library.as_bytes()));
        }
        let dump = servers.ask(from_ours, &[b"FUNCTION", b"DUMP"]);
        let payload = dump.bytes().unwrap();
        let restore: [&[u8]; 4] = [b"FUNCTION", b"RESTORE", payload, b"FLUSH"];
        assert!(servers.ask(!from_ours, &restore).is_ok());
        for call in [
            &[b"FCALL".as_slice(), b"f", b"0"],
            &[b"FCALL".as_slice(), b"g", b"0"],
        ] {
            assert_eq!(servers.ask(true, call), servers.ask(false, call));
        }
        let restore: [&[u8]; 3] = [b"FUNCTION", b"RESTORE", payload];
        let refused = servers.ask(!from_ours, &restore);
        let refused = refused.error_text().unwrap().into_owned();
        assert!(refused.starts_with("ERR Library ") && refused.ends_with(" already exists"));
    }
}
