//! The commands of the histories in wire format, and their replies.

use rand::RngExt;
use rand::rngs::StdRng;

use super::model::{Ask, Item, LISTS, Reply, SET, Side};
use super::values;
use crate::client::NO_SUCH_KEY;
use crate::resp::Value;
use crate::workers::texts;

/// Number of members of the sorted set. Small, so that commands interact.
const MEMBERS: u32 = 4;
const SCORES: i64 = 5;

/// The keys of one history, and the values used so far.
pub struct Keys {
    pub prefix: String,
    pub next_value: u32,
}

impl Keys {
    fn value(&mut self) -> u32 {
        self.next_value += 1;
        self.next_value
    }

    fn name(&self, key: usize) -> String {
        let name = ["a", "b", "set"][key];
        format!("{}:{name}", self.prefix)
    }

    fn names(&self, keys: &[usize]) -> String {
        let names: Vec<String> = keys.iter().map(|key| self.name(*key)).collect();
        names.join(" ")
    }

    fn position(&self, name: &str) -> Option<usize> {
        (0..=SET).find(|key| self.name(*key) == name)
    }
}

fn side(random: &mut StdRng) -> Side {
    if random.random() {
        Side::Front
    } else {
        Side::Back
    }
}

/// A command with its line, or a transaction with its lines.
pub fn draw(random: &mut StdRng, keys: &mut Keys) -> (Ask, Vec<Vec<String>>) {
    if random.random_range(0..6) > 0 {
        let (ask, line) = draw_one(random, keys, true);
        return (ask, vec![words(&line)]);
    }
    let count = random.random_range(2..=3);
    let (asks, lines): (Vec<Ask>, Vec<String>) =
        (0..count).map(|_| draw_one(random, keys, false)).collect();
    (
        Ask::Transaction(asks),
        lines.iter().map(|line| words(line)).collect(),
    )
}

/// Commands to send together: one of any kind that does not wait, followed by commands that see and
/// do exactly what is right at their moment on every store (docs/understand/semantics.md).
pub fn draw_pipeline(
    random: &mut StdRng,
    keys: &mut Keys,
    count: usize,
) -> Vec<(Ask, Vec<String>)> {
    let (first, line) = draw_one(random, keys, false);
    let mut drawn = vec![(first, words(&line))];
    while drawn.len() < count {
        let (ask, line) = draw_one(random, keys, false);
        let is_exact = matches!(
            ask,
            Ask::Read(_)
                | Ask::Length(_)
                | Ask::Peek(..)
                | Ask::Score(_)
                | Ask::Add(..)
                | Ask::Increment(..)
                | Ask::Remove(_)
                | Ask::Value(_)
        );
        if is_exact {
            drawn.push((ask, words(&line)));
        }
    }
    drawn
}

/// The command that reads a whole key.
pub fn read(keys: &Keys, key: usize) -> (Ask, Vec<Vec<String>>) {
    let name = keys.name(key);
    let line = if key == SET {
        format!("ZRANGE {name} 0 -1 WITHSCORES")
    } else {
        format!("LRANGE {name} 0 -1")
    };
    (Ask::Read(key), vec![words(&line)])
}

/// The commands that read the string, the hash and the set.
pub fn reads_of_values(keys: &Keys) -> Vec<(Ask, Vec<Vec<String>>)> {
    let drawn = values::reads(&keys.prefix).into_iter();
    drawn
        .map(|(ask, line)| (Ask::Value(ask), vec![words(&line)]))
        .collect()
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn draw_one(random: &mut StdRng, keys: &mut Keys, may_wait: bool) -> (Ask, String) {
    let key = random.random_range(0..LISTS);
    let name = keys.name(key);
    let side = side(random);
    let letter = if side == Side::Front { 'L' } else { 'R' };
    match random.random_range(0..32) {
        0..=3 => {
            let values: Vec<u32> = (0..random.random_range(1..=2))
                .map(|_| keys.value())
                .collect();
            let text: Vec<String> = values.iter().map(u32::to_string).collect();
            let line = format!("{letter}PUSH {name} {}", text.join(" "));
            (Ask::Push(key, side, values), line)
        }
        4 => {
            let value = keys.value();
            let line = format!("{letter}PUSHX {name} {value}");
            (Ask::PushIfThere(key, side, value), line)
        }
        5..=9 => draw_pop_of_list(random, keys, key, side, may_wait),
        10 => {
            let (to, to_side) = (random.random_range(0..LISTS), self::side(random));
            let word = |side| if side == Side::Front { "LEFT" } else { "RIGHT" };
            let line = format!(
                "LMOVE {name} {} {} {}",
                keys.name(to),
                word(side),
                word(to_side)
            );
            (Ask::Move((key, side), (to, to_side)), line)
        }
        11 | 12 => {
            let key = random.random_range(0..=SET);
            let (ask, mut lines) = read(keys, key);
            (ask, lines.pop().unwrap_or_default().join(" "))
        }
        13 => (Ask::Length(key), format!("LLEN {name}")),
        14 => {
            let key = random.random_range(0..=SET);
            (Ask::Delete(key), format!("DEL {}", keys.name(key)))
        }
        15 | 16 => draw_change_of_list(random, keys, key, side),
        17..=22 => draw_on_set(random, keys, side, may_wait),
        _ => {
            let (ask, line) = values::draw(random, &keys.prefix);
            (Ask::Value(ask), line)
        }
    }
}

fn draw_change_of_list(
    random: &mut StdRng,
    keys: &mut Keys,
    key: usize,
    side: Side,
) -> (Ask, String) {
    let name = keys.name(key);
    let (index, rest) = match side {
        Side::Front => ("0", "1 -1"),
        Side::Back => ("-1", "0 -2"),
    };
    let both = keys.names(&[key, 1 - key]);
    match random.random_range(0..5) {
        0 => (Ask::Peek(key, side), format!("LINDEX {name} {index}")),
        1 => {
            let value = keys.value();
            let line = format!("LSET {name} {index} {value}");
            (Ask::Set(key, side, value), line)
        }
        2 => (Ask::Trim(key, side), format!("LTRIM {name} {rest}")),
        3 => (Ask::Rename(key, 1 - key), format!("RENAME {both}")),
        _ => (Ask::Copy(key, 1 - key), format!("COPY {both} REPLACE")),
    }
}

fn draw_pop_of_list(
    random: &mut StdRng,
    keys: &Keys,
    key: usize,
    side: Side,
    may_wait: bool,
) -> (Ask, String) {
    let name = keys.name(key);
    let (letter, word) = match side {
        Side::Front => ('L', "LEFT"),
        Side::Back => ('R', "RIGHT"),
    };
    let both = [key, 1 - key];
    let count = random.random_range(2..=3);
    match random.random_range(0..5) {
        0 => {
            let line = format!("{letter}POP {name} {count}");
            (Ask::Pop(vec![key], side, count), line)
        }
        1 => {
            let line = format!("LMPOP 2 {} {word} COUNT {count}", keys.names(&both));
            (Ask::Pop(both.to_vec(), side, count), line)
        }
        2 if may_wait => {
            let line = format!("B{letter}POP {} 0.03", keys.names(&both));
            (Ask::Pop(both.to_vec(), side, 1), line)
        }
        _ => (Ask::Pop(vec![key], side, 1), format!("{letter}POP {name}")),
    }
}

fn draw_on_set(random: &mut StdRng, keys: &Keys, side: Side, may_wait: bool) -> (Ask, String) {
    let name = keys.name(SET);
    let member = random.random_range(0..MEMBERS);
    let score = random.random_range(0..SCORES);
    let end = if side == Side::Front { "MIN" } else { "MAX" };
    match random.random_range(0..8) {
        0 | 1 => (
            Ask::Add(member, score),
            format!("ZADD {name} {score} {member}"),
        ),
        2 => (
            Ask::Increment(member, score),
            format!("ZINCRBY {name} {score} {member}"),
        ),
        3 => (Ask::Remove(member), format!("ZREM {name} {member}")),
        4 => (Ask::Score(member), format!("ZSCORE {name} {member}")),
        5 => (Ask::Length(SET), format!("ZCARD {name}")),
        6 if may_wait => (
            Ask::Pop(vec![SET], side, 1),
            format!("BZPOP{end} {name} 0.03"),
        ),
        _ => {
            let count = random.random_range(1..=3);
            (
                Ask::Pop(vec![SET], side, count),
                format!("ZPOP{end} {name} {count}"),
            )
        }
    }
}

/// Reads a reply to a command. `None`: it is none.
pub fn read_reply(keys: &Keys, ask: &Ask, value: &Value) -> Option<Reply> {
    let mut texts = texts(value);
    let reply = match ask {
        Ask::Set(..) | Ask::Rename(..) if value.error() == Some(NO_SUCH_KEY) => Reply::NoSuchKey,
        Ask::Set(..) | Ask::Rename(..) | Ask::Trim(..) => Reply::Done,
        Ask::Copy(..) => Reply::Integer(value.integer()?),
        Ask::Peek(..) => Reply::Items(items(&texts, false)?),
        Ask::Push(..) | Ask::PushIfThere(..) | Ask::Length(_) | Ask::Delete(_) => {
            Reply::Integer(value.integer()?)
        }
        Ask::Add(..) | Ask::Remove(_) => Reply::Integer(value.integer()?),
        Ask::Increment(..) | Ask::Score(_) => {
            let score = texts.first().map(|text| text.parse());
            Reply::Number(score.transpose().ok()?)
        }
        Ask::Value(ask) => values::read_reply(ask, value)?,
        Ask::Read(key) => Reply::Items(items(&texts, *key == SET)?),
        Ask::Move(..) => Reply::Items(items(&texts, false)?),
        Ask::Pop(asked, ..) => {
            let named = texts.first().and_then(|text| keys.position(text));
            if named.is_some() {
                texts.remove(0);
            }
            let from = match asked.as_slice() {
                _ if texts.is_empty() => None,
                [key] => Some(*key),
                _ => Some(named?),
            };
            Reply::Popped(from, items(&texts, from == Some(SET))?)
        }
        Ask::Transaction(asks) => {
            let replies = value.items()?;
            let replies = asks.iter().zip(replies);
            Reply::All(
                replies
                    .map(|(ask, value)| read_reply(keys, ask, value))
                    .collect::<Option<_>>()?,
            )
        }
        Ask::Saw(..) | Ask::Take(..) | Ask::Placed(..) => return None,
    };
    Some(reply)
}

fn items(texts: &[String], has_scores: bool) -> Option<Vec<Item>> {
    let width = if has_scores { 2 } else { 1 };
    texts
        .chunks(width)
        .map(|item| match item {
            [value] if !has_scores => Some((value.parse().ok()?, 0)),
            [member, score] => Some((member.parse().ok()?, score.parse().ok()?)),
            _ => None,
        })
        .collect()
}
