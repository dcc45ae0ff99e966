//! Lua's patterns, matched like `lstrlib.c` of Lua 5.1. Lua's own matcher can take exponential time
//! and cannot be interrupted. This one counts its steps.

use std::ffi::CStr;

/// Captures of a pattern (Lua: `LUA_MAXCAPTURES`).
const CAPTURES_MAX: usize = 32;
/// Deepest nesting of items of a pattern. Each level takes some of the fiber's stack.
const DEPTH_MAX: usize = 2_000;
/// Characters with a special meaning in a pattern. Lua's list lacks `)`, which matters to
/// `string.find`.
const SPECIALS: &[u8] = b"^$*+?.([%-";

/// Why there is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The text to raise.
    Wrong(&'static CStr),
    /// The script should end.
    Ended,
}

type Checked<T> = Result<T, Failure>;

const fn wrong<T>(text: &'static CStr) -> Checked<T> {
    Err(Failure::Wrong(text))
}

/// What a pair of parentheses has captured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Capture {
    pub(super) start: usize,
    pub(super) extent: Extent,
}

/// How far a capture reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// It is not closed.
    Unfinished,
    /// A position.
    Position,
    Length(usize),
}

/// A pattern as Lua reads it: a string of C.
fn until_zero(pattern: &[u8]) -> &[u8] {
    let end = pattern.iter().position(|byte| *byte == 0);
    pattern
        .get(..end.unwrap_or(pattern.len()))
        .unwrap_or(pattern)
}

/// Whether a pattern is no more than a text.
pub(super) fn is_plain(pattern: &[u8]) -> bool {
    !until_zero(pattern)
        .iter()
        .any(|byte| SPECIALS.contains(byte))
}

/// A subject and a pattern. It owns nothing, because Lua may jump over it.
pub(super) struct Matcher<'m, S> {
    pub(super) subject: &'m [u8],
    /// Without its `^`.
    pattern: &'m [u8],
    level: usize,
    captures: [Capture; CAPTURES_MAX],
    depth: usize,
    /// Counts steps. False if the script should end.
    spend: S,
}

impl<'m, S: FnMut(usize) -> bool> Matcher<'m, S> {
    pub(super) fn new(subject: &'m [u8], pattern: &'m [u8], spend: S) -> Self {
        let none = Capture {
            start: 0,
            extent: Extent::Unfinished,
        };
        Self {
            subject,
            pattern: until_zero(pattern),
            level: 0,
            captures: [none; CAPTURES_MAX],
            depth: 0,
            spend,
        }
    }

    /// End of a match that begins at `start`.
    pub(super) fn match_at(&mut self, start: usize) -> Checked<Option<usize>> {
        self.level = 0;
        self.depth = 0;
        self.run(start, 0)
    }

    /// Begin and end of the first match from `start` on.
    pub(super) fn find_from(&mut self, start: usize) -> Checked<Option<(usize, usize)>> {
        for start in start..=self.subject.len() {
            if self.is_barred(start, 0) {
                self.step(1)?;
                continue;
            }
            if let Some(end) = self.match_at(start)? {
                return Ok(Some((start, end)));
            }
        }
        Ok(None)
    }

    /// The captures of the last match.
    pub(super) fn captures(&self) -> &[Capture] {
        self.captures.get(..self.level).unwrap_or_default()
    }

    /// The byte of the pattern. 0 after its end.
    #[inline]
    fn at(&self, place: usize) -> u8 {
        self.pattern.get(place).copied().unwrap_or(0)
    }

    /// The byte of the subject. 0 after its end.
    #[inline]
    fn byte(&self, place: usize) -> u8 {
        self.subject.get(place).copied().unwrap_or(0)
    }

    #[inline]
    fn step(&mut self, steps: usize) -> Checked<()> {
        match (self.spend)(steps) {
            true => Ok(()),
            false => Err(Failure::Ended),
        }
    }

    /// Whether the pattern at `p` begins with a letter or digit that differs from the byte at `s`.
    /// A quick check only.
    #[inline]
    fn is_barred(&self, s: usize, p: usize) -> bool {
        let literal = self.at(p);
        literal.is_ascii_alphanumeric()
            && self.subject.get(s) != Some(&literal)
            && !matches!(self.at(p + 1), b'*' | b'?' | b'-')
    }

    /// Matches one nesting level deeper.
    fn descend(&mut self, s: usize, p: usize) -> Checked<Option<usize>> {
        if self.is_barred(s, p) {
            return Ok(None);
        }
        if self.depth >= DEPTH_MAX {
            return wrong(c"pattern too complex");
        }
        self.depth += 1;
        let end = self.run(s, p)?;
        self.depth -= 1;
        Ok(end)
    }

    /// End of the match of the pattern from `p` on, if it matches at `s`.
    fn run(&mut self, mut s: usize, mut p: usize) -> Checked<Option<usize>> {
        loop {
            match self.at(p) {
                0 if p >= self.pattern.len() => return Ok(Some(s)),
                b'(' if self.at(p + 1) == b')' => {
                    return self.start_capture(s, p + 2, Extent::Position);
                }
                b'(' => return self.start_capture(s, p + 1, Extent::Unfinished),
                b')' => return self.end_capture(s, p + 1),
                b'$' if p + 1 >= self.pattern.len() => {
                    return Ok((s == self.subject.len()).then_some(s));
                }
                b'%' => match self.at(p + 1) {
                    b'b' => match self.balanced(s, p + 2)? {
                        Some(end) => (s, p) = (end, p + 4),
                        None => return Ok(None),
                    },
                    b'f' => {
                        p += 2;
                        if self.at(p) != b'[' {
                            return wrong(c"missing '[' after '%f' in pattern");
                        }
                        let end = self.item_end(p)?;
                        self.step(end - p)?;
                        let before = s.checked_sub(1).map_or(0, |before| self.byte(before));
                        if self.is_in_class(before, p, end - 1)
                            || !self.is_in_class(self.byte(s), p, end - 1)
                        {
                            return Ok(None);
                        }
                        p = end;
                    }
                    digit if digit.is_ascii_digit() => match self.repeated(s, digit)? {
                        Some(end) => (s, p) = (end, p + 2),
                        None => return Ok(None),
                    },
                    _ => match self.item(s, p)? {
                        Next::GoOn(to_s, to_p) => (s, p) = (to_s, to_p),
                        Next::Done(end) => return Ok(end),
                    },
                },
                _ => match self.item(s, p)? {
                    Next::GoOn(to_s, to_p) => (s, p) = (to_s, to_p),
                    Next::Done(end) => return Ok(end),
                },
            }
        }
    }

    /// Matches a character or class with its repetition.
    #[inline]
    fn item(&mut self, s: usize, p: usize) -> Checked<Next> {
        let end = self.item_end(p)?;
        self.step(end - p)?;
        let is_match = s < self.subject.len() && self.is_match(self.byte(s), p, end);
        Ok(match self.at(end) {
            b'?' => {
                if is_match && let Some(found) = self.descend(s + 1, end + 1)? {
                    return Ok(Next::Done(Some(found)));
                }
                Next::GoOn(s, end + 1)
            }
            b'*' => Next::Done(self.expand(s, p, end)?),
            b'+' if is_match => Next::Done(self.expand(s + 1, p, end)?),
            b'+' => Next::Done(None),
            b'-' => Next::Done(self.expand_little(s, p, end)?),
            _ if is_match => Next::GoOn(s + 1, end),
            _ => Next::Done(None),
        })
    }

    /// As often as possible.
    fn expand(&mut self, s: usize, p: usize, end: usize) -> Checked<Option<usize>> {
        let mut count = 0;
        while let Some(byte) = self.subject.get(s + count) {
            if !self.is_match(*byte, p, end) {
                break;
            }
            self.step(end - p)?;
            count += 1;
        }
        for count in (0..=count).rev() {
            if let Some(found) = self.descend(s + count, end + 1)? {
                return Ok(Some(found));
            }
            self.step(1)?;
        }
        Ok(None)
    }

    /// As rarely as possible.
    fn expand_little(&mut self, s: usize, p: usize, end: usize) -> Checked<Option<usize>> {
        for s in s.. {
            if let Some(found) = self.descend(s, end + 1)? {
                return Ok(Some(found));
            }
            self.step(end - p)?;
            if s >= self.subject.len() || !self.is_match(self.byte(s), p, end) {
                break;
            }
        }
        Ok(None)
    }

    fn start_capture(&mut self, s: usize, p: usize, extent: Extent) -> Checked<Option<usize>> {
        let Some(capture) = self.captures.get_mut(self.level) else {
            return wrong(c"too many captures");
        };
        *capture = Capture { start: s, extent };
        self.level += 1;
        let found = self.descend(s, p)?;
        if found.is_none() {
            self.level -= 1;
        }
        Ok(found)
    }

    fn end_capture(&mut self, s: usize, p: usize) -> Checked<Option<usize>> {
        let is_open = |capture: &Capture| capture.extent == Extent::Unfinished;
        let Some(number) = self.captures().iter().rposition(is_open) else {
            return wrong(c"invalid pattern capture");
        };
        if let Some(capture) = self.captures.get_mut(number) {
            capture.extent = Extent::Length(s - capture.start);
        }
        let found = self.descend(s, p)?;
        if found.is_none()
            && let Some(capture) = self.captures.get_mut(number)
        {
            capture.extent = Extent::Unfinished;
        }
        Ok(found)
    }

    /// Matches the text of an earlier capture (`%1`).
    fn repeated(&mut self, s: usize, digit: u8) -> Checked<Option<usize>> {
        let number = usize::from(digit).checked_sub(usize::from(b'1'));
        let capture = number.and_then(|number| self.captures().get(number).copied());
        let (start, length) = match capture {
            None => return wrong(c"invalid capture index"),
            Some(capture) => match capture.extent {
                Extent::Unfinished => return wrong(c"invalid capture index"),
                // Lua treats its length as greater than any text's.
                Extent::Position => return Ok(None),
                Extent::Length(length) => (capture.start, length),
            },
        };
        self.step(length)?;
        let caught = self.subject.get(start..start + length);
        let here = self.subject.get(s..s + length);
        Ok((here.is_some() && caught == here).then_some(s + length))
    }

    /// Matches balanced text that begins with the first byte at `p` and ends with the second
    /// (`%b()`).
    fn balanced(&mut self, s: usize, p: usize) -> Checked<Option<usize>> {
        let [open, close] = match self.pattern.get(p..p + 2) {
            Some([open, close]) => [*open, *close],
            _ => return wrong(c"unbalanced pattern"),
        };
        if s >= self.subject.len() || self.byte(s) != open {
            return Ok(None);
        }
        let mut depth = 1_usize;
        for (place, byte) in self.subject.iter().enumerate().skip(s + 1) {
            if *byte == close {
                depth -= 1;
                if depth == 0 {
                    self.step(place - s)?;
                    return Ok(Some(place + 1));
                }
            } else if *byte == open {
                depth += 1;
            }
        }
        self.step(self.subject.len() - s)?;
        Ok(None)
    }

    /// End of the character or the class at `p`.
    #[inline]
    fn item_end(&self, p: usize) -> Checked<usize> {
        match self.at(p) {
            b'%' if p + 1 >= self.pattern.len() => wrong(c"malformed pattern (ends with '%')"),
            b'%' => Ok(p + 2),
            b'[' => self.class_end(p),
            _ => Ok(p + 1),
        }
    }

    fn class_end(&self, p: usize) -> Checked<usize> {
        let mut place = p + 1;
        if self.at(place) == b'^' {
            place += 1;
        }
        // A `]` at the beginning belongs to the class.
        loop {
            if place >= self.pattern.len() {
                return wrong(c"malformed pattern (missing ']')");
            }
            let is_escape = self.at(place) == b'%';
            place += 1;
            if is_escape && place < self.pattern.len() {
                place += 1;
            }
            if self.at(place) == b']' {
                return Ok(place + 1);
            }
        }
    }

    /// Whether a byte matches the item from `p` to `end`.
    #[inline]
    fn is_match(&self, byte: u8, p: usize, end: usize) -> bool {
        match self.at(p) {
            b'.' => true,
            b'%' => is_of_kind(byte, self.at(p + 1)),
            b'[' => self.is_in_class(byte, p, end - 1),
            literal => literal == byte,
        }
    }

    /// Whether a byte is in the class whose `[` is at `p` and whose `]` is at `last`.
    fn is_in_class(&self, byte: u8, p: usize, last: usize) -> bool {
        let is_negated = self.at(p + 1) == b'^';
        let mut place = p + 1 + usize::from(is_negated);
        while place < last {
            let item = self.at(place);
            if item == b'%' {
                if is_of_kind(byte, self.at(place + 1)) {
                    return !is_negated;
                }
                place += 2;
            } else if self.at(place + 1) == b'-' && place + 2 < last {
                if (item..=self.at(place + 2)).contains(&byte) {
                    return !is_negated;
                }
                place += 3;
            } else {
                if item == byte {
                    return !is_negated;
                }
                place += 1;
            }
        }
        is_negated
    }
}

/// What comes after an item.
enum Next {
    /// The subject and the pattern from these places on.
    GoOn(usize, usize),
    Done(Option<usize>),
}

/// Whether a byte is in the class that the letter after a `%` names, in the locale `C`.
fn is_of_kind(byte: u8, letter: u8) -> bool {
    let is_of_kind = match letter.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => matches!(byte, b' ' | b'\t'..=b'\r'),
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return letter == byte,
    };
    is_of_kind == letter.is_ascii_lowercase()
}
