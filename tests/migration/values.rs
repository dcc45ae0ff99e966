//! Random strings, lists, sorted sets, hashes and sets of many sizes.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::resp::{Connection, Value, Words};

/// Elements or members in one command.
const WORDS_AT_ONCE: usize = 500;

/// The content of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum Held {
    String(Vec<u8>),
    List(Vec<Vec<u8>>),
    /// Member and score, in no certain order.
    Set(Vec<(Vec<u8>, f64)>),
    /// Field and value, in the order of fields.
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
    /// Members of a set without scores, in their order.
    Members(Vec<Vec<u8>>),
    /// XRANGE of a stream, and XINFO GROUPS of its groups. Only read.
    Stream(Value, Value),
}

pub struct Values {
    random: StdRng,
}

impl Values {
    pub fn new(seed: u64) -> Self {
        Self {
            random: StdRng::seed_from_u64(seed),
        }
    }

    pub fn next(&mut self) -> Held {
        let count = match self.random.random_range(0..10) {
            0 => 1,
            1..6 => self.random.random_range(1..20),
            6 => self.random.random_range(126..131),
            7 | 8 => self.random.random_range(1..1_000),
            _ => self.random.random_range(1..5_000),
        };
        let kind = self.random.random_range(0..5);
        match self.random.random_range(0..5) {
            4 => {
                let parts = count.min(40);
                Held::String((0..parts).flat_map(|_| self.element(kind)).collect())
            }
            0 => Held::List((0..count).map(|_| self.element(kind)).collect()),
            1 => {
                let members: BTreeMap<Vec<u8>, f64> = (0..count)
                    .map(|_| (self.element(kind), self.score()))
                    .collect();
                Held::Set(members.into_iter().collect())
            }
            2 => {
                let fields: BTreeMap<Vec<u8>, Vec<u8>> = (0..count)
                    .map(|_| (self.element(kind), self.element(kind)))
                    .collect();
                Held::Hash(fields.into_iter().collect())
            }
            _ => {
                let members: BTreeSet<Vec<u8>> = (0..count).map(|_| self.element(kind)).collect();
                Held::Members(members.into_iter().collect())
            }
        }
    }

    /// Integers of every width, short and long texts, and compressible ones.
    fn element(&mut self, kind: u32) -> Vec<u8> {
        let random = &mut self.random;
        match (kind, random.random_range(0..40)) {
            (0, 0..30) | (1, _) => {
                let shift = random.random_range(0..64);
                (random.random::<i64>() >> shift).to_string().into_bytes()
            }
            (2, 0) => vec![random.random(); random.random_range(0..70_000)],
            (2 | 3, 1..3) => {
                let length = random.random_range(8_000..8_400);
                (0..length).map(|_| random.random()).collect()
            }
            (3, _) => {
                let length = random.random_range(55..72);
                (0..length).map(|_| random.random()).collect()
            }
            (4, 0..20) => {
                let number: u16 = random.random();
                format!("{{\"queue\":\"default\",\"class\":\"Job\",\"id\":{number}}}").into_bytes()
            }
            _ => {
                let length = random.random_range(0..20);
                (0..length).map(|_| random.random()).collect()
            }
        }
    }

    fn score(&mut self) -> f64 {
        let random = &mut self.random;
        match random.random_range(0..10) {
            0 => f64::INFINITY,
            1 => f64::NEG_INFINITY,
            2 => random.random::<f64>() * 1e300,
            3 => random.random::<f64>(),
            4 => (random.random::<i64>() >> random.random_range(0..63)) as f64,
            _ => f64::from(random.random_range(0_u16..100)),
        }
    }
}

impl Held {
    /// The same with its first elements only.
    pub fn cut_to(self, count: usize) -> Self {
        match self {
            whole @ (Held::String(_) | Held::Stream(..)) => whole,
            Held::List(elements) => Held::List(elements.into_iter().take(count).collect()),
            Held::Set(members) => Held::Set(members.into_iter().take(count).collect()),
            Held::Hash(fields) => Held::Hash(fields.into_iter().take(count).collect()),
            Held::Members(members) => Held::Members(members.into_iter().take(count).collect()),
        }
    }

    /// Its members as numbers, if it is a set of numbers.
    pub fn numbers(&self) -> Option<Vec<i64>> {
        let Held::Members(members) = self else {
            return None;
        };
        let number = |member: &Vec<u8>| {
            let number: i64 = std::str::from_utf8(member).ok()?.parse().ok()?;
            (number.to_string().as_bytes() == member).then_some(number)
        };
        let mut numbers: Vec<i64> = members.iter().map(number).collect::<Option<_>>()?;
        numbers.sort_unstable();
        Some(numbers)
    }

    /// Whether all Redis versions, and Quoin, write its elements in the same order. Quoin keeps that
    /// of a hash only while it is small (decision 020).
    pub fn has_one_form(&self) -> bool {
        match self {
            Held::String(_) | Held::List(_) | Held::Set(_) | Held::Stream(..) => true,
            Held::Hash(fields) => {
                let mut parts = fields.iter().flat_map(|(field, value)| [field, value]);
                let body_bytes: usize = parts.clone().map(|part| part.len() + 1).sum();
                let is_small = fields.len() <= 64 && body_bytes <= 1_024;
                is_small && parts.all(|part| part.len() <= 64)
            }
            Held::Members(members) => members.len() <= 512 && self.numbers().is_some(),
        }
    }

    /// Puts it at a key of a server that has none of that name.
    pub fn put(&self, connection: &mut Connection, key: &[u8]) {
        let (name, words): (&str, Words) = match self {
            Held::String(string) => {
                let reply = connection.command(&[b"SET", key, string]).unwrap();
                assert_eq!(reply, Value::Line(b'+', b"OK".to_vec()));
                return;
            }
            Held::List(elements) => ("RPUSH", elements.clone()),
            Held::Set(members) => {
                let word = |(member, score): &(Vec<u8>, f64)| {
                    [score.to_string().into_bytes(), member.clone()]
                };
                ("ZADD", members.iter().flat_map(word).collect())
            }
            Held::Hash(fields) => {
                let parts = fields.iter().flat_map(|(field, value)| [field, value]);
                ("HSET", parts.cloned().collect())
            }
            Held::Members(members) => ("SADD", members.clone()),
            Held::Stream(..) => unreachable!("streams are only read"),
        };
        let commands: Vec<Words> = words
            .chunks(WORDS_AT_ONCE)
            .map(|some| [&[name.into(), key.to_vec()], some].concat())
            .collect();
        for reply in connection.pipeline(&commands).unwrap() {
            assert!(reply.integer().is_some(), "{reply:?}");
        }
    }

    /// The content of a server's key.
    pub fn get(connection: &mut Connection, key: &[u8]) -> Option<Self> {
        let mut ask = |words: &[&[u8]]| connection.command(words).unwrap();
        let text = |value: &Value| value.bytes().unwrap().to_vec();
        let kind = ask(&[b"TYPE", key]);
        if kind == Value::Line(b'+', b"string".to_vec()) {
            let string = text(&ask(&[b"GET", key]));
            let length = ask(&[b"STRLEN", key]).integer().unwrap();
            assert_eq!(length, string.len() as i64);
            Some(Held::String(string))
        } else if kind == Value::Line(b'+', b"list".to_vec()) {
            let elements = ask(&[b"LRANGE", key, b"0", b"-1"]);
            let elements: Vec<_> = elements.items().unwrap().iter().map(text).collect();
            let length = ask(&[b"LLEN", key]).integer().unwrap();
            assert_eq!(length, elements.len() as i64);
            Some(Held::List(elements))
        } else if kind == Value::Line(b'+', b"zset".to_vec()) {
            let words = ask(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"]);
            let words: Vec<_> = words.items().unwrap().iter().map(text).collect();
            let length = ask(&[b"ZCARD", key]).integer().unwrap();
            assert_eq!(length * 2, words.len() as i64);
            let number = |text: &[u8]| std::str::from_utf8(text).unwrap().parse().unwrap();
            let mut members: Vec<(Vec<u8>, f64)> = words
                .chunks(2)
                .map(|pair| (pair[0].clone(), number(&pair[1])))
                .collect();
            members.sort_by(|one, other| one.0.cmp(&other.0));
            Some(Held::Set(members))
        } else if kind == Value::Line(b'+', b"hash".to_vec()) {
            let words = ask(&[b"HGETALL", key]);
            let words: Vec<_> = words.items().unwrap().iter().map(text).collect();
            let length = ask(&[b"HLEN", key]).integer().unwrap();
            assert_eq!(length * 2, words.len() as i64);
            let pairs = words.chunks(2);
            let mut fields: Vec<_> = pairs
                .map(|pair| (pair[0].clone(), pair[1].clone()))
                .collect();
            fields.sort();
            Some(Held::Hash(fields))
        } else if kind == Value::Line(b'+', b"set".to_vec()) {
            let members = ask(&[b"SMEMBERS", key]);
            let mut members: Vec<_> = members.items().unwrap().iter().map(text).collect();
            let length = ask(&[b"SCARD", key]).integer().unwrap();
            assert_eq!(length, members.len() as i64);
            members.sort();
            Some(Held::Members(members))
        } else if kind == Value::Line(b'+', b"stream".to_vec()) {
            let entries = ask(&[b"XRANGE", key, b"-", b"+"]);
            Some(Held::Stream(entries, ask(&[b"XINFO", b"GROUPS", key])))
        } else {
            assert_eq!(kind, Value::Line(b'+', b"none".to_vec()));
            None
        }
    }
}
