//! What a server notes the time of.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::commands::scripting::runs_script;
use crate::commands::{Invocation, Row};

/// Bytes at the beginning and the end of a script's text, or of its name, by which it is told from others.
const SAMPLE_BYTES: usize = 128;

/// A command; of commands that run scripts, those that run the same one.
#[derive(Clone, Copy)]
pub(super) struct Timed {
    pub(super) row: &'static Row,
    /// 0 where no script is run. Scripts that differ have different numbers, nearly always.
    script: u64,
}

impl Timed {
    pub(super) fn of(invocation: &Invocation) -> Self {
        let row = invocation.row;
        let script = invocation.arguments.get(1);
        let script = script.filter(|_| runs_script(row)).map_or(0, |script| {
            let first = script.get(..SAMPLE_BYTES).unwrap_or(script);
            let last = script.len().saturating_sub(SAMPLE_BYTES);
            let last = script.get(last..).unwrap_or_default();
            let mut hasher = DefaultHasher::new();
            (first, last, script.len()).hash(&mut hasher);
            hasher.finish()
        });
        Self { row, script }
    }

    /// The command, whatever script it runs.
    pub(super) fn without_script(self) -> Self {
        Self { script: 0, ..self }
    }

    /// Equal for what is timed together.
    pub(super) fn id(&self) -> (usize, u64) {
        (self.row.id, self.script)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::{invocation, words_of};

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
}
