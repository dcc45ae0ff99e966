//! The string, the hash and the set of the histories: what commands on them do, and their wire
//! format.
//!
//! Each reply is exact at the command's moment on every store, because these commands read
//! serializably what they change.

use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt;
use rand::rngs::StdRng;

use super::model::Reply;
use crate::resp::Value;
use crate::workers::texts;

/// Number of fields of the hash and members of the set. Small, so that commands interact.
const NAMES: u32 = 3;
const AMOUNTS: i64 = 5;
/// A member that is too long for the set to be stored in its key's metadata.
const LONG: u32 = NAMES;
const LONG_NAME_BYTES: usize = 2_000;
/// The number of commands that read everything.
pub const READS: usize = 2 + NAMES as usize;

/// The content of the keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Values {
    number: Option<i64>,
    fields: BTreeMap<u32, i64>,
    members: BTreeSet<u32>,
}

/// A command on one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueAsk {
    Get,
    GetAndDelete,
    GetAndSet(i64),
    Increment(i64),
    SetIfAbsent(i64),
    Field(u32),
    Fields,
    IncrementField(u32, i64),
    SetFieldIfAbsent(u32, i64),
    DeleteField(u32),
    Members,
    HasMember(u32),
    AddMember(u32),
    RemoveMember(u32),
    PopMember,
}

impl Values {
    /// The possible outcomes of a command.
    pub fn outcomes(&self, ask: &ValueAsk) -> Vec<(Self, Reply)> {
        let mut next = self.clone();
        let is_new = |is_new: bool| Reply::Integer(is_new.into());
        let reply = match *ask {
            ValueAsk::Get => Reply::Number(self.number),
            ValueAsk::GetAndDelete => Reply::Number(next.number.take()),
            ValueAsk::GetAndSet(number) => Reply::Number(next.number.replace(number)),
            ValueAsk::Increment(by) => {
                let number = self.number.unwrap_or(0) + by;
                next.number = Some(number);
                Reply::Integer(number)
            }
            ValueAsk::SetIfAbsent(number) => {
                next.number.get_or_insert(number);
                is_new(self.number.is_none())
            }
            ValueAsk::Field(name) => Reply::Number(self.fields.get(&name).copied()),
            ValueAsk::Fields => Reply::Integer(self.fields.len() as i64),
            ValueAsk::IncrementField(name, by) => {
                let number = next.fields.entry(name).or_insert(0);
                *number += by;
                Reply::Integer(*number)
            }
            ValueAsk::SetFieldIfAbsent(name, number) => {
                next.fields.entry(name).or_insert(number);
                is_new(!self.fields.contains_key(&name))
            }
            ValueAsk::DeleteField(name) => is_new(next.fields.remove(&name).is_some()),
            ValueAsk::Members => Reply::Integer(self.members.len() as i64),
            ValueAsk::HasMember(name) => is_new(self.members.contains(&name)),
            ValueAsk::AddMember(name) => is_new(next.members.insert(name)),
            ValueAsk::RemoveMember(name) => is_new(next.members.remove(&name)),
            ValueAsk::PopMember => return self.pops(),
        };
        vec![(next, reply)]
    }

    /// Any member may be popped.
    fn pops(&self) -> Vec<(Self, Reply)> {
        if self.members.is_empty() {
            return vec![(self.clone(), Reply::Number(None))];
        }
        let pops = self.members.iter().map(|name| {
            let mut next = self.clone();
            next.members.remove(name);
            (next, Reply::Number(Some((*name).into())))
        });
        pops.collect()
    }
}

/// A command with its line.
pub fn draw(random: &mut StdRng, prefix: &str) -> (ValueAsk, String) {
    let name = random.random_range(0..NAMES);
    let member = random.random_range(0..=LONG);
    let amount = random.random_range(1..=AMOUNTS);
    let ask = match random.random_range(0..16) {
        0 => ValueAsk::Get,
        1 => ValueAsk::GetAndDelete,
        2 => ValueAsk::GetAndSet(amount),
        3 | 4 => ValueAsk::Increment(amount),
        5 => ValueAsk::SetIfAbsent(amount),
        6 => ValueAsk::Field(name),
        7 => ValueAsk::Fields,
        8 => ValueAsk::IncrementField(name, amount),
        9 => ValueAsk::SetFieldIfAbsent(name, amount),
        10 => ValueAsk::DeleteField(name),
        11 => ValueAsk::Members,
        12 => ValueAsk::HasMember(member),
        13 => ValueAsk::AddMember(member),
        14 => ValueAsk::RemoveMember(member),
        _ => ValueAsk::PopMember,
    };
    (ask, line(prefix, ask))
}

/// The commands that read everything.
pub fn reads(prefix: &str) -> Vec<(ValueAsk, String)> {
    let fields = (0..NAMES).map(ValueAsk::Field);
    let asks = [ValueAsk::Get, ValueAsk::Members].into_iter().chain(fields);
    asks.map(|ask| (ask, line(prefix, ask))).collect()
}

fn line(prefix: &str, ask: ValueAsk) -> String {
    let (string, hash, set) = ("string", "hash", "members");
    let (verb, key, rest) = match ask {
        ValueAsk::Get => ("GET", string, String::new()),
        ValueAsk::GetAndDelete => ("GETDEL", string, String::new()),
        ValueAsk::GetAndSet(number) => ("GETSET", string, format!(" {number}")),
        ValueAsk::Increment(by) => ("INCRBY", string, format!(" {by}")),
        ValueAsk::SetIfAbsent(number) => ("SETNX", string, format!(" {number}")),
        ValueAsk::Field(name) => ("HGET", hash, format!(" {name}")),
        ValueAsk::Fields => ("HLEN", hash, String::new()),
        ValueAsk::IncrementField(name, by) => ("HINCRBY", hash, format!(" {name} {by}")),
        ValueAsk::SetFieldIfAbsent(name, number) => ("HSETNX", hash, format!(" {name} {number}")),
        ValueAsk::DeleteField(name) => ("HDEL", hash, format!(" {name}")),
        ValueAsk::Members => ("SCARD", set, String::new()),
        ValueAsk::HasMember(name) => ("SISMEMBER", set, format!(" {}", text_of(name))),
        ValueAsk::AddMember(name) => ("SADD", set, format!(" {}", text_of(name))),
        ValueAsk::RemoveMember(name) => ("SREM", set, format!(" {}", text_of(name))),
        ValueAsk::PopMember => ("SPOP", set, String::new()),
    };
    format!("{verb} {prefix}:{key}{rest}")
}

fn text_of(member: u32) -> String {
    match member {
        LONG => LONG.to_string().repeat(LONG_NAME_BYTES),
        short => short.to_string(),
    }
}

/// Reads a reply to a command. `None`: it is none.
pub fn read_reply(ask: &ValueAsk, value: &Value) -> Option<Reply> {
    let text = texts(value).pop();
    Some(match ask {
        ValueAsk::Get | ValueAsk::GetAndDelete | ValueAsk::GetAndSet(_) | ValueAsk::Field(_) => {
            value.error().is_none().then_some(())?;
            Reply::Number(text.map(|text| text.parse()).transpose().ok()?)
        }
        ValueAsk::PopMember => {
            value.error().is_none().then_some(())?;
            let member = text.map(|text| match text.len() {
                LONG_NAME_BYTES => Ok(LONG.into()),
                _ => text.parse(),
            });
            Reply::Number(member.transpose().ok()?)
        }
        _ => Reply::Integer(value.integer()?),
    })
}
