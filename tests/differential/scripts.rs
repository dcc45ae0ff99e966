//! Random values through the libraries that scripts have, compared with Redis's to the byte.

use std::io::Write;

use crate::keys::Step;
use crate::number_of_environment;
use crate::servers::{Batch, Servers};
use crate::words::Dice;

/// Scripts that are compared.
const SCRIPTS: u64 = 3_000;

const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "-32",
    "-33",
    "127",
    "128",
    "255",
    "256",
    "-128",
    "-129",
    "65535",
    "65536",
    "-32768",
    "-32769",
    "2^31",
    "2^32",
    "2^32-1",
    "-2^31-1",
    "2^53",
    "2^53+1",
    "2^63",
    "-2^63",
    "1e15",
    "1e20",
    "1e300",
    "1e-7",
    "0.1",
    "1/3",
    "1.5",
    "-2.75",
    "123456.789",
    "12345678901234567",
    "1/0",
    "-1/0",
    "100",
    "7",
];

const STRINGS: &[&str] = &[
    "''",
    "'a'",
    "'abc'",
    "'\\0\\1\\31\\127'",
    "'\"\\\\/'",
    "'\\n\\r\\t\\b\\f'",
    "'\\200\\255'",
    "string.rep('x', 31)",
    "string.rep('x', 32)",
    "string.rep('y', 255)",
    "string.rep('y', 256)",
    "string.rep('z', 65536)",
    "'12'",
];

const JSON_PIECES: &[&str] = &[
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "1",
    "-0.5",
    "1e3",
    "01",
    "0x1f",
    "inf",
    "nan",
    "-",
    "+1",
    "true",
    "false",
    "null",
    "\"a\"",
    "\"\\\\u00e9\"",
    "\"\\\\ud83d\\\\ude00\"",
    "\"\\\\ud800\"",
    "\"\\\\q\"",
    "\"",
    " ",
    "x",
    "\\0",
];

const FORMATS: &[&str] = &[
    "b", "B", "h", "H", "i", "I", "l", "L", "i3", "I7", "i8", "i16", "f", "d", "n", "x", ">", "<",
    "!", "!4", " ", "T",
];

const BITS: &[&str] = &[
    "band", "bor", "bxor", "lshift", "rshift", "arshift", "rol", "ror", "tohex",
];

fn pick<'w>(dice: &mut Dice, words: &[&'w str]) -> &'w str {
    words[dice.below(words.len())]
}

/// An expression of Lua.
fn value(dice: &mut Dice, depth: usize) -> String {
    let kinds = if depth > 3 { 3 } else { 6 };
    match dice.below(kinds) {
        0 => pick(dice, NUMBERS).to_owned(),
        1 => pick(dice, STRINGS).to_owned(),
        2 => pick(dice, &["true", "false", "nil"]).to_owned(),
        3 | 4 => {
            let items: Vec<String> = (0..dice.below(5)).map(|_| value(dice, depth + 1)).collect();
            format!("{{{}}}", items.join(", "))
        }
        _ => {
            let pairs: Vec<String> = (0..dice.below(4))
                .map(|_| {
                    let name = match dice.below(3) {
                        0 => format!("[{}]", dice.below(30)),
                        _ => pick(dice, &["a", "b", "name", "x1"]).to_owned(),
                    };
                    format!("{name} = {}", value(dice, depth + 1))
                })
                .collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

fn script(dice: &mut Dice) -> String {
    match dice.below(9) {
        0 => format!("return cjson.encode({})", value(dice, 0)),
        1 => {
            let pieces: Vec<&str> = (0..dice.below(9))
                .map(|_| pick(dice, JSON_PIECES))
                .collect();
            let text = pieces.concat();
            format!("return cjson.encode(cjson.decode('{text}'))")
        }
        2 => {
            let (one, other) = (value(dice, 0), value(dice, 0));
            format!("return cmsgpack.pack({one}, {other})")
        }
        3 => {
            let packed = format!("cmsgpack.pack({})", value(dice, 0));
            let cut = dice.below(20);
            let text = match dice.one_in(2) {
                true => packed,
                false => format!("({packed}):sub(1, {cut})"),
            };
            format!("return cjson.encode({{cmsgpack.unpack({text})}})")
        }
        4 => {
            let format: String = (0..dice.below(6)).map(|_| pick(dice, FORMATS)).collect();
            let numbers: Vec<&str> = (0..6).map(|_| pick(dice, &NUMBERS[..30])).collect();
            let numbers = numbers.join(", ");
            format!("return {{struct.pack('{format}', {numbers}), struct.size('{format}')}}")
        }
        5 => {
            let format: String = (0..dice.below(6)).map(|_| pick(dice, FORMATS)).collect();
            let data: String = (0..24)
                .map(|_| format!("\\{:03}", dice.below(256)))
                .collect();
            let read = format!("struct.unpack('{format}', '{data}')");
            format!("local t = {{{read}}} for i = 1, #t do t[i] = tostring(t[i]) end return t")
        }
        6 => {
            let name = pick(dice, BITS);
            let (one, other) = (pick(dice, &NUMBERS[..30]), pick(dice, &NUMBERS[..16]));
            format!("return bit.{name}({one}, {other})")
        }
        7 => {
            let bytes: String = (0..dice.below(24))
                .map(|_| match dice.one_in(3) {
                    // Tables, texts and nil, which may be nested.
                    true => format!("\\{:03}", 128 + dice.below(70)),
                    false => format!("\\{:03}", dice.below(256)),
                })
                .collect();
            format!("return {{pcall(cmsgpack.unpack, '{bytes}')}}")
        }
        _ => format!("return {}", value(dice, 0)),
    }
}

#[test]
fn libraries_of_scripts_answer_as_redis_does() {
    let mut servers = match Servers::start() {
        Ok(servers) => servers,
        Err(error) if std::env::var_os("QUOIN_TEST_REQUIRE_REDIS").is_none() => {
            // Written past the capture of a passing test's output.
            let _ = writeln!(std::io::stderr(), "nothing is compared with Redis: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    servers.reset();
    let first = number_of_environment("QUOIN_TEST_SEED").unwrap_or(1);
    for seed in first..first + SCRIPTS {
        let text = script(&mut Dice::new(seed));
        let words = [b"EVAL".to_vec(), text.clone().into_bytes(), b"0".to_vec()];
        let batch = Batch {
            connection: 0,
            steps: vec![Step::Command(words.to_vec())],
        };
        if let Some(mismatch) = servers.compare(&batch) {
            panic!("QUOIN_TEST_SEED={seed}: {text}\n{}", mismatch.text);
        }
    }
}
