//! Identifies commands and scripts whose run time is measured.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;

use quoin_data::command::call::Invocation;
use quoin_data::command::row::Row;
use quoin_data::script::runs_script;

/// Scripts are compared by this many bytes at the beginning and the end of their text or name.
const SAMPLE_BYTES: usize = 128;

/// A command. A command that runs scripts is distinguished by its script.
#[derive(Clone)]
pub(super) struct Timed {
    pub(super) row: &'static Row,
    /// The text or name of the script, if the command runs one.
    script: Option<Bytes>,
    /// Its expected work ([`weight`]).
    weight: u32,
}

/// Arguments that add one to a command's weight.
const ARGUMENTS_EACH: usize = 4;

/// How many simple commands a command does the work of, by its arguments: MSET of many keys is
/// not one slow command but many quick ones. The arguments of scripts say nothing.
pub(super) fn weight(invocation: &Invocation) -> usize {
    match runs_script(invocation.row) {
        true => 1,
        false => (invocation.arguments.len() / ARGUMENTS_EACH).max(1),
    }
}

impl Timed {
    pub(super) fn of(invocation: &Invocation) -> Self {
        let row = invocation.row;
        let script = match runs_script(row) {
            true => invocation.arguments.get(1).cloned(),
            false => None,
        };
        let weight = u32::try_from(weight(invocation)).unwrap_or(u32::MAX);
        Self {
            row,
            script,
            weight,
        }
    }

    /// The number of simple commands that it does the work of.
    pub(super) fn weight(&self) -> u32 {
        self.weight
    }

    /// Equal for commands that are measured together. Different scripts almost always have different numbers.
    pub(super) fn id(&self) -> (usize, u64) {
        (self.row.id, self.script.as_ref().map_or(0, number_of))
    }

    /// The id of the command for any script.
    pub(super) fn id_without_script(&self) -> (usize, u64) {
        (self.row.id, 0)
    }
}

fn number_of(script: &Bytes) -> u64 {
    let first = script.get(..SAMPLE_BYTES).unwrap_or(script);
    let last = script.len().saturating_sub(SAMPLE_BYTES);
    let last = script.get(last..).unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    (first, last, script.len()).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{invocation, words_of};

    fn id(line: &str) -> (usize, u64) {
        Timed::of(&invocation(0, &words_of(line))).id()
    }

    #[test]
    fn scripts_are_told_apart() {
        assert_eq!(id("EVAL one 1 key"), id("EVAL one 1 other"));
        assert_ne!(id("EVAL one 1 key"), id("EVAL two 1 key"));
        let long = "x".repeat(SAMPLE_BYTES);
        assert_ne!(
            id(&format!("EVAL {long}a 0")),
            id(&format!("EVAL {long}b 0"))
        );
    }

    #[test]
    fn arguments_of_other_commands_do_not_matter() {
        assert_eq!(id("SCRIPT LOAD one"), id("SCRIPT LOAD two"));
        assert_eq!(id("GET one"), id("GET two"));
        assert_ne!(id("GET one"), id("SET one two"));
    }

    #[test]
    fn a_command_with_many_arguments_weighs_as_much_as_many_commands() {
        let weight_of = |line: &str| weight(&invocation(0, &words_of(line)));
        for simple in ["GET a", "SET a 1", "HSET a b c", "XADD a * b c"] {
            assert_eq!(weight_of(simple), 1, "{simple}");
        }
        assert_eq!(weight_of("MSET a 1 b 2 c 3 d 4 e 5 f 6 g 7 h 8"), 4);
        assert_eq!(weight_of("EVAL script 8 a b c d e f g h"), 1);
    }
}
