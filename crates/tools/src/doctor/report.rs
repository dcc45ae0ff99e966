//! The report of `quoin doctor`.

use std::fmt;

use quoin_base::size::counted;

/// Maximum number of problems of one kind that are named. The others are only counted.
const EXAMPLES_MAX: usize = 3;
/// Bytes of a name that it shows.
const NAME_BYTES_MAX: usize = 60;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Correct, or repaired.
    Ok,
    /// Nothing is lost or wrong for clients, but an operator should check it.
    Warn,
    /// Something is wrong for clients, or the store cannot be used.
    Fail,
}

impl Level {
    /// The word at the beginning of a line.
    pub fn word(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::Fail => "fail",
        }
    }

    /// The exit code if this is the worst level found.
    pub fn exit_code(self) -> u8 {
        match self {
            Level::Ok => 0,
            Level::Warn => 1,
            Level::Fail => 2,
        }
    }
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// How bad it is.
    pub level: Level,
    /// The check's name.
    pub check: &'static str,
    /// The finding, and what to do about it.
    pub text: String,
}

impl Line {
    pub(super) fn new(level: Level, check: &'static str, text: impl Into<String>) -> Self {
        Self {
            level,
            check,
            text: text.into(),
        }
    }

    pub(super) fn ok(check: &'static str, text: impl Into<String>) -> Self {
        Self::new(Level::Ok, check, text)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<4}  {:<13} {}",
            self.level.word(),
            self.check,
            self.text
        )
    }
}

/// Problems of one kind. All are counted, some are named.
#[derive(Debug, Default)]
pub(super) struct Finding {
    found: u64,
    repaired: u64,
    examples: Vec<String>,
}

impl Finding {
    pub(super) fn add(&mut self, name: impl FnOnce() -> String) {
        self.found += 1;
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(name());
        }
    }

    pub(super) fn count_repaired(&mut self) {
        self.repaired += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found == 0
    }

    fn describe(&self, [one, many]: [&str; 2]) -> String {
        let mut text = counted(self.found, one, many);
        if !self.examples.is_empty() {
            let more = if self.found as usize > self.examples.len() {
                ", …"
            } else {
                ""
            };
            text.push_str(&format!(" ({}{more})", self.examples.join(", ")));
        }
        if self.repaired == self.found {
            text.push_str(": repaired");
        } else if self.repaired > 0 {
            text.push_str(&format!(": {} repaired", self.repaired));
        }
        text
    }
}

/// Builds a check's line: the size of what was checked, then what is wrong and what to do.
#[derive(Debug)]
pub(super) struct Outcome {
    level: Level,
    parts: Vec<String>,
}

impl Outcome {
    pub(super) fn new(summary: impl Into<String>) -> Self {
        Self {
            level: Level::Ok,
            parts: vec![summary.into()],
        }
    }

    /// Adds a finding, unless it is empty. Problems that were all repaired no longer count as
    /// wrong. `what` is the text after the number, for 1 and for other numbers.
    pub(super) fn finding(
        &mut self,
        level: Level,
        finding: &Finding,
        what: [&str; 2],
        advice: &str,
    ) -> &mut Self {
        if finding.is_empty() {
            return self;
        }
        let mut text = finding.describe(what);
        if finding.repaired < finding.found {
            self.level = self.level.max(level);
            text.push_str(&format!(" - {advice}"));
        }
        self.parts.push(text);
        self
    }

    /// Adds another remark.
    pub(super) fn note(&mut self, level: Level, text: impl Into<String>) -> &mut Self {
        self.level = self.level.max(level);
        self.parts.push(text.into());
        self
    }

    pub(super) fn line(&self, check: &'static str) -> Line {
        Line::new(self.level, check, self.parts.join("; "))
    }
}

/// Clients' bytes in readable and shortened form.
pub(super) fn shown(bytes: &[u8]) -> String {
    let part = bytes.get(..NAME_BYTES_MAX).unwrap_or(bytes);
    let more = if part.len() < bytes.len() { "…" } else { "" };
    format!("\"{}{more}\"", part.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_level_its_check_and_what_was_found() {
        let line = Line::ok("keys", "7 keys");
        assert_eq!(line.to_string(), "ok    keys          7 keys");
    }

    #[test]
    fn what_is_wrong_is_counted_and_some_of_it_named() {
        let mut finding = Finding::default();
        for number in 0..5 {
            finding.add(|| format!("k{number}"));
        }
        let mut outcome = Outcome::new("9 keys");
        outcome.finding(
            Level::Fail,
            &finding,
            ["is wrong", "are wrong"],
            "call somebody",
        );
        outcome.finding(
            Level::Fail,
            &Finding::default(),
            ["is worse", "are worse"],
            "run",
        );
        let line = outcome.line("keys");
        assert_eq!(line.level, Level::Fail);
        assert_eq!(
            line.text,
            "9 keys; 5 are wrong (k0, k1, k2, …) - call somebody"
        );
    }

    #[test]
    fn what_was_repaired_is_not_wrong_any_more() {
        let mut finding = Finding::default();
        finding.add(|| "a".to_owned());
        finding.count_repaired();
        let mut outcome = Outcome::new("1 key");
        outcome.finding(
            Level::Fail,
            &finding,
            ["is wrong", "are wrong"],
            "call somebody",
        );
        let line = outcome.line("keys");
        assert_eq!(line.level, Level::Ok);
        assert_eq!(line.text, "1 key; 1 is wrong (a): repaired");
    }

    #[test]
    fn names_are_short_and_can_be_read() {
        assert_eq!(shown(b"a\0\"b"), "\"a\\x00\\\"b\"");
        assert_eq!(shown(&[b'x'; 100]).len(), 2 + 60 + "…".len());
    }
}
