//! The types that are copied, and the commands that read and write them.

use bytes::Bytes;

use super::pace::{CHUNK_ELEMENTS_MAX, SMALL_ELEMENTS_MAX};
use quoin_base::limits::IMPORT_CHUNK_BYTES;
use quoin_base::number::parse_double;
use quoin_rdb::{
    Chunks, HashWriter, ListWriter, SetWriter, SortedSetWriter, small_hash, small_set,
    small_sorted_set, string_payload,
};

/// A type that is copied. Its values are read as words: each element is so many of them. (The
/// elements of a string are its bytes, of which a word holds many.)
#[derive(Debug)]
pub(super) struct Kind {
    /// What TYPE answers.
    pub(super) name: &'static str,
    /// The command that counts elements.
    pub(super) counting: &'static [u8],
    /// How elements are read.
    pub(super) reading: Reading,
    /// The command that reads a small value at once, where that is another.
    pub(super) reading_whole: Option<&'static [u8]>,
    /// Words of one element.
    pub(super) element_words: usize,
    /// How many elements words hold.
    pub(super) elements_in: fn(&[Vec<u8>]) -> usize,
    /// Whether a key is there that has no elements.
    pub(super) may_be_empty: bool,
    /// Elements up to which a value is copied with one command, where they have no more than
    /// `IMPORT_CHUNK_BYTES`.
    pub(super) small_max: i64,
    /// Elements that are put into one command.
    pub(super) chunk_max: i64,
    /// The command that adds elements at the end.
    pub(super) adding: &'static [u8],
    /// Whether that takes the words of an element in the opposite order.
    pub(super) adds_reversed: bool,
    /// A payload for RESTORE; `None` where a word is not what it should be.
    pub(super) payload: fn(Vec<Vec<u8>>) -> Option<Bytes>,
}

/// How the elements of a value are read.
#[derive(Debug)]
pub(super) enum Reading {
    /// From one rank to another: the command, and what follows the ranks.
    Ranks(&'static [u8], &'static [&'static [u8]]),
    /// In no order, some of them twice: the command that iterates.
    Iteration(&'static [u8]),
    /// Whole, however large, as a payload: what `reading_whole` answers. A large one is written in
    /// parts (`streams`).
    Dump,
}

/// Where a stretch of a value begins.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Rank(i64),
    Cursor(Vec<u8>),
}

/// All types that are copied.
static KINDS: &[Kind] = &[
    Kind {
        name: "list",
        counting: b"LLEN",
        reading: Reading::Ranks(b"LRANGE", &[]),
        reading_whole: None,
        element_words: 1,
        elements_in: <[_]>::len,
        may_be_empty: false,
        small_max: SMALL_ELEMENTS_MAX,
        chunk_max: CHUNK_ELEMENTS_MAX,
        adding: b"RPUSH",
        adds_reversed: false,
        payload: list,
    },
    Kind {
        name: "zset",
        counting: b"ZCARD",
        reading: Reading::Ranks(b"ZRANGE", &[b"WITHSCORES"]),
        reading_whole: None,
        element_words: 2,
        elements_in: |words| words.len() / 2,
        may_be_empty: false,
        small_max: SMALL_ELEMENTS_MAX,
        chunk_max: CHUNK_ELEMENTS_MAX,
        adding: b"ZADD",
        adds_reversed: true,
        payload: sorted_set,
    },
    Kind {
        name: "pqueue",
        counting: b"PQ.LEN",
        reading: Reading::Iteration(b"PQ.SCANDUMP"),
        reading_whole: Some(b"DUMP"),
        element_words: 1,
        elements_in: in_chunks,
        may_be_empty: false,
        small_max: SMALL_ELEMENTS_MAX,
        chunk_max: CHUNK_ELEMENTS_MAX,
        adding: b"PQ.LOADCHUNK",
        adds_reversed: false,
        payload: |mut words| words.pop().map(Bytes::from),
    },
    Kind {
        name: "taskqueue",
        counting: b"TASK.LEN",
        reading: Reading::Iteration(b"TASK.SCANDUMP"),
        reading_whole: Some(b"DUMP"),
        element_words: 1,
        elements_in: in_chunks,
        may_be_empty: false,
        small_max: SMALL_ELEMENTS_MAX,
        chunk_max: CHUNK_ELEMENTS_MAX,
        adding: b"TASK.LOADCHUNK",
        adds_reversed: false,
        payload: |mut words| words.pop().map(Bytes::from),
    },
    Kind {
        name: "string",
        counting: b"STRLEN",
        reading: Reading::Ranks(b"GETRANGE", &[]),
        reading_whole: Some(b"GET"),
        element_words: 1,
        elements_in: |words| words.iter().map(Vec::len).sum(),
        may_be_empty: true,
        small_max: IMPORT_CHUNK_BYTES as i64,
        chunk_max: IMPORT_CHUNK_BYTES as i64,
        adding: b"APPEND",
        adds_reversed: false,
        payload: |words| Some(string_payload(&words.concat())),
    },
    Kind {
        name: "hash",
        counting: b"HLEN",
        reading: Reading::Iteration(b"HSCAN"),
        reading_whole: Some(b"HGETALL"),
        element_words: 2,
        elements_in: |words| words.len() / 2,
        may_be_empty: false,
        small_max: SMALL_ELEMENTS_MAX,
        chunk_max: CHUNK_ELEMENTS_MAX,
        adding: b"HSET",
        adds_reversed: false,
        payload: hash,
    },
    Kind {
        name: "set",
        counting: b"SCARD",
        reading: Reading::Iteration(b"SSCAN"),
        reading_whole: Some(b"SMEMBERS"),
        element_words: 1,
        elements_in: <[_]>::len,
        may_be_empty: false,
        small_max: SMALL_ELEMENTS_MAX,
        chunk_max: CHUNK_ELEMENTS_MAX,
        adding: b"SADD",
        adds_reversed: false,
        payload: set,
    },
    // What it knows besides its entries no other command reads as a whole.
    Kind {
        name: "stream",
        counting: b"XLEN",
        reading: Reading::Dump,
        reading_whole: Some(b"DUMP"),
        element_words: 1,
        elements_in: <[_]>::len,
        may_be_empty: true,
        small_max: i64::MAX,
        chunk_max: CHUNK_ELEMENTS_MAX,
        adding: b"RESTORE",
        adds_reversed: false,
        payload: |mut words| words.pop().map(Bytes::from),
    },
];

impl Kind {
    /// The type of that name, if it is copied.
    pub(super) fn named(name: &[u8]) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name.as_bytes() == name)
    }

    /// Where a value begins.
    pub(super) fn first_place(&self) -> Place {
        match self.reading {
            Reading::Ranks(..) | Reading::Dump => Place::Rank(0),
            Reading::Iteration(_) => Place::Cursor(b"0".to_vec()),
        }
    }

    /// Whether only a Quoin has it.
    pub(super) fn is_own(&self) -> bool {
        matches!(self.name, "pqueue" | "taskqueue")
    }

    /// Whether it is only read as a whole.
    pub(super) fn is_dumped(&self) -> bool {
        matches!(self.reading, Reading::Dump)
    }

    /// Whether each element is read once.
    pub(super) fn reads_each_once(&self) -> bool {
        matches!(self.reading, Reading::Ranks(..))
    }
}

/// Elements of payloads of Quoin's own types.
fn in_chunks(payloads: &[Vec<u8>]) -> usize {
    let count = |payload: &Vec<u8>| {
        let payload = quoin_rdb::open(&Bytes::copy_from_slice(payload))?;
        Chunks::new(payload)?.count_left()
    };
    let counts = payloads.iter().map(|payload| count(payload).unwrap_or(0));
    usize::try_from(counts.sum::<u64>()).unwrap_or(usize::MAX)
}

fn list(elements: Vec<Vec<u8>>) -> Option<Bytes> {
    let mut writer = ListWriter::new();
    for element in &elements {
        writer.push(element);
    }
    Some(writer.finish())
}

fn sorted_set(words: Vec<Vec<u8>>) -> Option<Bytes> {
    let mut words = words.into_iter();
    let mut members: Vec<(Bytes, f64)> = Vec::new();
    while let Some(member) = words.next() {
        let score = parse_double(&words.next()?)?;
        members.push((member.into(), score));
    }
    small_sorted_set(&members).or_else(|| {
        let mut writer = SortedSetWriter::new(members.len() as u64);
        for (member, score) in members.iter().rev() {
            writer.push(member, *score);
        }
        Some(writer.finish())
    })
}

fn hash(words: Vec<Vec<u8>>) -> Option<Bytes> {
    let words: Vec<Bytes> = words.into_iter().map(Bytes::from).collect();
    let (pairs, odd) = words.as_chunks::<2>();
    if !odd.is_empty() {
        return None;
    }
    let fields = pairs.iter().map(|[field, value]| (field, value));
    small_hash(fields.clone()).or_else(|| {
        let mut writer = HashWriter::new(pairs.len() as u64);
        for (field, value) in fields {
            writer.push(field, value);
        }
        Some(writer.finish())
    })
}

fn set(members: Vec<Vec<u8>>) -> Option<Bytes> {
    let members: Vec<Bytes> = members.into_iter().map(Bytes::from).collect();
    small_set(members.iter()).or_else(|| {
        let mut writer = SetWriter::new(members.len() as u64);
        for member in &members {
            writer.push(member);
        }
        Some(writer.finish())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quoin_data::keyspace::kind::ValueKind;

    #[test]
    fn all_types_that_can_be_dumped_are_copied() {
        let known = ValueKind::all().filter(|kind| kind.serialization.is_some());
        let known: Vec<_> = known.map(|kind| kind.name).collect();
        let copied: Vec<_> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(copied, known);
    }
}
