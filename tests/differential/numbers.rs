//! The arithmetic of INCRBYFLOAT: the library's long doubles compared with those of `redis-server`.

use std::io::Write;

use quoin_base::number::LongDouble;

use crate::redis_server::Redis;
use crate::resp::{Connection, Value, Words};
use crate::words::Dice;
use crate::{FIRST_SEED, number_of_environment};

const SUMS: usize = 6_000;
const PIPELINE: usize = 500;

#[test]
fn long_doubles_are_read_added_and_written_as_redis_does() {
    let redis = match Redis::start() {
        Ok(redis) => redis,
        Err(error) if std::env::var_os("QUOIN_TEST_REQUIRE_REDIS").is_none() => {
            let _ = writeln!(std::io::stderr(), "no sum is compared with Redis: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let mut connection = Connection::open_unix(redis.socket()).unwrap();
    let mut dice = Dice::new(number_of_environment("QUOIN_TEST_SEED").unwrap_or(FIRST_SEED));
    for _ in 0..SUMS / PIPELINE {
        let sums: Vec<_> = (0..PIPELINE)
            .map(|_| (dice.long_double(), dice.long_double()))
            .collect();
        let commands: Vec<Words> = sums
            .iter()
            .flat_map(|(first, second)| {
                [
                    vec![b"SET".to_vec(), b"k".to_vec(), first.clone()],
                    vec![b"INCRBYFLOAT".to_vec(), b"k".to_vec(), second.clone()],
                ]
            })
            .collect();
        let replies = connection.pipeline(&commands).unwrap();
        for ((first, second), replies) in sums.iter().zip(replies.chunks(2)) {
            let found = sum(first, second);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert_eq!(found, replies[1], "{} + {}", text(first), text(second));
        }
    }
}

/// The reply of INCRBYFLOAT.
fn sum(first: &[u8], second: &[u8]) -> Value {
    let error = |line: &str| Value::Line(b'-', line.as_bytes().to_vec());
    match (LongDouble::parse(first), LongDouble::parse(second)) {
        (Some(first), Some(second)) if (first + second).is_finite() => {
            Value::Blob(b'$', Some((first + second).to_string().into_bytes()))
        }
        (Some(_), Some(_)) => error("ERR increment would produce NaN or Infinity"),
        _ => error("ERR value is not a valid float"),
    }
}
