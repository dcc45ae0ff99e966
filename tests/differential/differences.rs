//! The only list of known differences from Redis's replies, each with its reason.
//! docs/start/compatibility.md shows it, and a test keeps the two consistent.

use crate::resp::{Value, Words};
use crate::stream_groups::{without_lag, without_times};

/// How the replies of a command are compared if not byte for byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// The same items in whatever order.
    Unordered,
    /// The same pairs of items in whatever order.
    UnorderedPairs,
    /// The same number and kinds of items.
    Shape,
    /// The same if an item contains a zero byte.
    ShapeWithZeroBytes,
    /// Integers that are this near to each other.
    Near(i64),
    /// Errors, of whatever words.
    Error,
    /// Error lines that are equal up to the first bytes that are not UTF-8.
    UpToBinary,
    /// Errors that begin the same.
    ErrorBeginning(&'static str),
    /// The same apart from the fields about Redis's radix tree.
    WithoutRadixTree,
    /// The same apart from times of consumer groups, and from fields about Redis's radix tree.
    WithoutTimes,
    /// That, and apart from consumers that have no pending entries.
    WithoutIdleConsumers,
    /// The same apart from times, and from how many entries groups have read.
    WithoutLag,
    /// The same number, in whatever digits.
    Number,
    /// `0` and `-0` are equal.
    Zero,
}

/// Where a difference shows.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// In replies of these commands (subcommands after a space).
    Commands(&'static [&'static str]),
    /// In replies of these commands, if the other server is a Redis before 7.2.
    CommandsBefore72(&'static [&'static str]),
    /// In replies of these commands, if the other server is Redis 8.0 or later.
    CommandsSince8(&'static [&'static str]),
    /// In every sorted-set command, when the other server is a Redis before 7.2.
    ScoresBefore72,
    /// In ZRANK and ZREVRANK, when the other server is a Redis before 7.2.
    RanksBefore72,
    /// In every sorted-set command.
    Scores,
    /// In SORT with a BY that turns sorting off.
    UnsortedSort,
    /// In errors that repeat what the client sent.
    EchoedInErrors,
    /// In commands that the test does not send.
    NotSent,
}

/// A known difference.
#[derive(Debug)]
pub struct Difference {
    /// Where it shows.
    pub place: Place,
    /// What is compared nevertheless.
    pub comparison: Comparison,
    /// The reason, a sentence of docs/start/compatibility.md.
    pub reason: &'static str,
}

pub const DIFFERENCES: &[Difference] = &[
    Difference {
        place: Place::Commands(&["KEYS"]),
        comparison: Comparison::Unordered,
        reason: "KEYS answers in no defined order.",
    },
    Difference {
        place: Place::Commands(&["RANDOMKEY", "ZRANDMEMBER", "SRANDMEMBER", "HRANDFIELD"]),
        comparison: Comparison::Shape,
        reason: "RANDOMKEY, ZRANDMEMBER, SRANDMEMBER and HRANDFIELD answer at random.",
    },
    Difference {
        place: Place::Commands(&[
            "SMEMBERS", "SUNION", "SINTER", "SDIFF", "SPOP", "HKEYS", "HVALS",
        ]),
        comparison: Comparison::Unordered,
        reason: "Hashes and sets are answered in no defined order; small ones, up to 64 fields or members and about 1 kB, in the order of Redis 7.2.",
    },
    Difference {
        place: Place::Commands(&["HGETALL"]),
        comparison: Comparison::UnorderedPairs,
        reason: "Hashes and sets are answered in no defined order; small ones, up to 64 fields or members and about 1 kB, in the order of Redis 7.2.",
    },
    Difference {
        place: Place::UnsortedSort,
        comparison: Comparison::Unordered,
        reason: "SORT BY a constant answers members of a set in no defined order.",
    },
    Difference {
        place: Place::Commands(&["TTL"]),
        comparison: Comparison::Near(1),
        reason: "TTL and PTTL change between two commands.",
    },
    Difference {
        place: Place::Commands(&["EXPIRETIME"]),
        comparison: Comparison::Near(1),
        reason: "EXPIRETIME and PEXPIRETIME after a relative EXPIRE depend on when it arrived.",
    },
    Difference {
        place: Place::Commands(&["PTTL", "PEXPIRETIME"]),
        comparison: Comparison::Near(5_000),
        reason: "TTL and PTTL change between two commands.",
    },
    Difference {
        place: Place::Commands(&["MEMORY USAGE", "OBJECT ENCODING", "OBJECT REFCOUNT"]),
        comparison: Comparison::Shape,
        reason: "MEMORY USAGE, OBJECT ENCODING and OBJECT REFCOUNT describe Redis's representation in memory, which has a history that Quoin's does not have.",
    },
    Difference {
        place: Place::Commands(&["DUMP"]),
        comparison: Comparison::Shape,
        reason: "DUMP writes the RDB version of Redis 7.0 without compression, so its bytes may differ; each server restores both to the same value (tests/migration).",
    },
    Difference {
        place: Place::Commands(&["XINFO STREAM"]),
        comparison: Comparison::WithoutRadixTree,
        reason: "XINFO STREAM reports the nodes that Redis would have for small entries as radix-tree-keys, and one more as radix-tree-nodes.",
    },
    Difference {
        place: Place::Commands(&["XPENDING", "XINFO"]),
        comparison: Comparison::WithoutTimes,
        reason: "Times of consumer groups (idle, seen-time and the like) differ between any two servers.",
    },
    Difference {
        place: Place::CommandsBefore72(&["XINFO"]),
        comparison: Comparison::WithoutIdleConsumers,
        reason: "Redis before 7.2 makes a consumer only when it is given an entry.",
    },
    Difference {
        place: Place::CommandsSince8(&["XINFO"]),
        comparison: Comparison::WithoutLag,
        reason: "Redis 8 computes entries-read and lag of XINFO in another way than Redis 7.2 where entries are gone.",
    },
    Difference {
        place: Place::CommandsBefore72(&["XGROUP CREATECONSUMER"]),
        comparison: Comparison::Shape,
        reason: "Redis before 7.2 makes a consumer only when it is given an entry.",
    },
    Difference {
        place: Place::Commands(&["XREAD", "XREADGROUP"]),
        comparison: Comparison::ErrorBeginning("ERR Unbalanced "),
        reason: "Redis before 7.2 writes the name of XREAD in another way in its error about unbalanced streams.",
    },
    Difference {
        place: Place::NotSent,
        comparison: Comparison::Shape,
        reason: "BITFIELD whose writes all fail (OVERFLOW FAIL) may make a string longer. WATCH sees that, in Redis not.",
    },
    Difference {
        place: Place::NotSent,
        comparison: Comparison::Shape,
        reason: "Approximate trimming (MAXLEN ~, MINID ~) removes the nodes of Redis, which are computed from the entries: where some were deleted, nodes may begin elsewhere.",
    },
    Difference {
        place: Place::ScoresBefore72,
        comparison: Comparison::Number,
        reason: "Redis before 7.2 writes scores with 17 digits; Quoin writes the shortest digits, as Redis 7.2 does.",
    },
    Difference {
        place: Place::RanksBefore72,
        comparison: Comparison::Error,
        reason: "Redis before 7.2 has no WITHSCORE in ZRANK and ZREVRANK, and reports extra arguments with other errors.",
    },
    Difference {
        place: Place::Commands(&["ZSCAN"]),
        comparison: Comparison::Number,
        reason: "ZSCAN in Redis writes scores with 17 digits once a set is large (or SORT has read it); Quoin always writes the shortest digits.",
    },
    Difference {
        place: Place::Scores,
        comparison: Comparison::Zero,
        reason: "A score of −0 is kept as 0, because both are one position in the order of the store.",
    },
    Difference {
        place: Place::EchoedInErrors,
        comparison: Comparison::UpToBinary,
        reason: "Error lines repeat arguments that are not UTF-8 with replacement characters.",
    },
    Difference {
        place: Place::NotSent,
        comparison: Comparison::Shape,
        reason: "Lexicographical ranges (BYLEX and the like) of a set whose scores differ are undefined in Redis, and depend on its skip list; such commands are not sent.",
    },
    Difference {
        place: Place::NotSent,
        comparison: Comparison::Shape,
        reason: "LPOS with the smallest 64-bit number as RANK is refused only since Redis 7.2; such commands are not sent.",
    },
    Difference {
        place: Place::NotSent,
        comparison: Comparison::Shape,
        reason: "LSET with an index beyond 32 bits: in short lists Redis cuts it to 32 bits and may find an element, Quoin reports it as out of range; such commands are not sent.",
    },
    Difference {
        place: Place::NotSent,
        comparison: Comparison::Shape,
        reason: "Numbers too small for a normal double make Redis refuse any later SORT (it does not reset `errno`); such numbers are not sent.",
    },
    Difference {
        place: Place::NotSent,
        comparison: Comparison::Shape,
        reason: "SORT ALPHA with BY orders elements of equal weight arbitrarily; such commands are not sent.",
    },
    Difference {
        place: Place::Commands(&["SORT", "SORT_RO"]),
        comparison: Comparison::ShapeWithZeroBytes,
        reason: "SORT ALPHA in Redis compares elements up to their first zero byte (except with STORE); Quoin compares them completely.",
    },
];

impl Place {
    fn holds(&self, command: &Words, version: (u32, u32)) -> bool {
        let name = upper(command, 0);
        let is_any = |names: &[&str]| {
            names.iter().any(|known| match known.split_once(' ') {
                Some((container, subcommand)) => {
                    name == container && upper(command, 1) == subcommand
                }
                None => name == *known,
            })
        };
        match self {
            Place::Commands(names) => is_any(names),
            Place::CommandsBefore72(names) => version < (7, 2) && is_any(names),
            Place::CommandsSince8(names) => version >= (8, 0) && is_any(names),
            Place::RanksBefore72 => version < (7, 2) && name.ends_with("RANK"),
            Place::Scores => is_of_sorted_sets(&name),
            Place::UnsortedSort => {
                let mut pairs = command.windows(2);
                name.starts_with("SORT")
                    && pairs
                        .any(|pair| pair[0].eq_ignore_ascii_case(b"BY") && !pair[1].contains(&b'*'))
            }
            Place::EchoedInErrors => true,
            Place::NotSent => false,
            Place::ScoresBefore72 => version < (7, 2) && is_of_sorted_sets(&name),
        }
    }
}

fn is_of_sorted_sets(name: &str) -> bool {
    name.starts_with('Z') || name.starts_with("BZ")
}

pub fn upper(command: &Words, at: usize) -> String {
    let word = command.get(at).map(Vec::as_slice).unwrap_or_default();
    String::from_utf8_lossy(word).to_ascii_uppercase()
}

/// Whether the replies are equal, except for the known differences.
pub fn agree(command: &Words, version: (u32, u32), ours: &Value, theirs: &Value) -> bool {
    ours == theirs
        || DIFFERENCES
            .iter()
            .filter(|difference| difference.place.holds(command, version))
            .any(|difference| matches(difference.comparison, ours, theirs))
}

fn matches(comparison: Comparison, ours: &Value, theirs: &Value) -> bool {
    match comparison {
        Comparison::Unordered => sorted(ours) == sorted(theirs),
        Comparison::UnorderedPairs => match (ours, theirs) {
            (Value::Aggregate(kind, Some(ours)), Value::Aggregate(other, Some(theirs))) => {
                let sorted_pairs = |items: &[Value]| {
                    let mut pairs: Vec<_> = items.chunks(2).map(<[Value]>::to_vec).collect();
                    pairs.sort();
                    pairs
                };
                kind == other && sorted_pairs(ours) == sorted_pairs(theirs)
            }
            _ => false,
        },
        Comparison::Near(distance) => match (ours.integer(), theirs.integer()) {
            // Negative answers are no times.
            (Some(ours), Some(theirs)) => {
                ours.min(theirs) >= 0 && (ours - theirs).abs() <= distance
            }
            _ => false,
        },
        Comparison::ShapeWithZeroBytes => {
            let has_zero = |value: &Value| {
                let items = value.items().unwrap_or_default();
                items
                    .iter()
                    .any(|item| item.bytes().is_some_and(|bytes| bytes.contains(&0)))
            };
            (has_zero(ours) || has_zero(theirs)) && same_leaves(Comparison::Shape, ours, theirs)
        }
        Comparison::ErrorBeginning(beginning) => [ours, theirs].iter().all(|reply| {
            let error = reply.error();
            error.is_some_and(|error| error.starts_with(beginning.as_bytes()))
        }),
        Comparison::WithoutTimes => without_times(ours, false) == without_times(theirs, false),
        Comparison::WithoutIdleConsumers => {
            without_times(ours, true) == without_times(theirs, true)
        }
        Comparison::WithoutLag => {
            let kept = |value| without_lag(&without_times(value, false));
            kept(ours) == kept(theirs)
        }
        Comparison::WithoutRadixTree => without_radix_tree(ours) == without_radix_tree(theirs),
        Comparison::Error => ours.error().is_some() && theirs.error().is_some(),
        Comparison::UpToBinary => match (ours.error(), theirs.error()) {
            (Some(ours), Some(theirs)) => theirs.utf8_chunks().next().is_some_and(|chunk| {
                let alike = chunk.valid().as_bytes();
                alike.len() < theirs.len() && ours.starts_with(alike)
            }),
            _ => false,
        },
        Comparison::Shape | Comparison::Number | Comparison::Zero => {
            same_leaves(comparison, ours, theirs)
        }
    }
}

/// The fields of a reply, without those about the radix tree and their values.
fn without_radix_tree(value: &Value) -> Option<Vec<&[Value]>> {
    let fields = value.items()?.chunks(2);
    let is_kept = |field: &&[Value]| {
        let name = field.first().and_then(Value::bytes);
        !name.is_some_and(|name| name.starts_with(b"radix-tree-"))
    };
    Some(fields.filter(is_kept).collect())
}

fn same_leaves(comparison: Comparison, ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Aggregate(kind, Some(ours)), Value::Aggregate(other, Some(theirs))) => {
            kind == other
                && ours.len() == theirs.len()
                && std::iter::zip(ours, theirs)
                    .all(|(ours, theirs)| same_leaves(comparison, ours, theirs))
        }
        (Value::Line(b'-', _), _) | (_, Value::Line(b'-', _)) => ours == theirs,
        (Value::Line(kind, ours), Value::Line(other, theirs))
        | (Value::Blob(kind, Some(ours)), Value::Blob(other, Some(theirs))) => {
            let is_alike = match comparison {
                Comparison::Shape => true,
                Comparison::Number => same_number(ours, theirs),
                _ => [ours, theirs]
                    .iter()
                    .all(|text| [&b"0"[..], b"-0"].contains(&text.as_slice())),
            };
            kind == other && (ours == theirs || is_alike)
        }
        _ => ours == theirs,
    }
}

/// A score of ZSCAN as the number that it is.
pub fn plain_score(score: &Value) -> Value {
    let number = score
        .bytes()
        .and_then(|text| std::str::from_utf8(text).ok()?.parse::<f64>().ok());
    match number {
        // The addition turns −0 into 0.
        Some(number) => Value::Line(b',', (number + 0.0).to_string().into_bytes()),
        None => score.clone(),
    }
}

fn same_number(ours: &[u8], theirs: &[u8]) -> bool {
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<f64>().ok();
    matches!((number(ours), number(theirs)), (Some(ours), Some(theirs)) if ours == theirs)
}

/// The reply with its items sorted.
pub fn sorted(value: &Value) -> Value {
    match value {
        Value::Aggregate(kind, Some(items)) => {
            let mut items = items.clone();
            items.sort();
            Value::Aggregate(*kind, Some(items))
        }
        other => other.clone(),
    }
}

#[test]
fn the_document_shows_every_known_difference() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/start/compatibility.md");
    let document = std::fs::read_to_string(path).unwrap();
    for difference in DIFFERENCES {
        assert!(
            document.contains(difference.reason),
            "{}",
            difference.reason
        );
    }
}
