//! Glob patterns of KEYS, SCAN, CONFIG GET and similar commands, with Redis's exact semantics
//! (`stringmatchlen`): `*`, `?`, `[a-z]`, `[^a-z]`, `\` before a literal byte.
//!
//! Two oddities of Redis are kept because clients can see them: only the empty pattern matches the
//! empty text (KEYS and SCAN handle the pattern `*` separately, before they match), and the ends of
//! a range compare as signed bytes, like `char` on x86.
//!
//! Matching takes time in proportion to the lengths of the text and the pattern. A pattern for many
//! texts is compiled once ([`Glob`]). A single text is first compared without that ([`matches`]).

use memchr::memmem::Finder;

use super::limits::{GLOB_ELEMENTS_MAX, GLOB_STARS_MAX};

/// Whether upper and lower case of ASCII letters count as equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// `a` and `A` differ: keys.
    Sensitive,
    /// `a` and `A` are equal: names of settings and commands.
    Insensitive,
}

/// Steps for each byte of pattern and text after which [`matches`] compiles the pattern.
const STEPS_PER_BYTE_MAX: usize = 8;

/// Whether `text` matches the glob `pattern` as a whole.
///
/// As in Redis, a pattern with more than [`GLOB_STARS_MAX`] separate `*` matches nothing.
pub fn matches(pattern: &[u8], text: &[u8], case: Case) -> bool {
    let bytes = pattern.len().saturating_add(text.len());
    let steps = bytes.saturating_mul(STEPS_PER_BYTE_MAX);
    matches_within(pattern, text, case, steps)
        .unwrap_or_else(|| Glob::new(pattern, case).matches(text))
}

/// Whether they match. `None` if that is undecided after `steps`.
///
/// Only the last `*` is ever tried again: if the part after it matches nowhere, a longer match of
/// an earlier `*` cannot help.
fn matches_within(pattern: &[u8], text: &[u8], case: Case, steps: usize) -> Option<bool> {
    let mut pattern_at = 0;
    let mut text_at = 0;
    let mut stars = 0;
    let mut steps = steps;
    // Where to resume if the current attempt fails: after the last `*`, one byte later.
    let mut retry: Option<(usize, usize)> = None;

    while let Some(&byte) = text.get(text_at) {
        if pattern.get(pattern_at) == Some(&b'*') {
            pattern_at = skip_stars(pattern, pattern_at);
            if pattern_at == pattern.len() {
                return Some(true);
            }
            stars += 1;
            if stars > GLOB_STARS_MAX {
                return Some(false);
            }
            retry = Some((pattern_at, text_at));
            continue;
        }
        let (is_match, next) = match_one(pattern, pattern_at, byte, case);
        steps = steps.checked_sub((next - pattern_at).max(1))?;
        if is_match {
            pattern_at = next;
            text_at += 1;
        } else {
            let Some((after_star, from)) = retry else {
                return Some(false);
            };
            pattern_at = after_star;
            text_at = from + 1;
            retry = Some((after_star, text_at));
        }
    }
    // Every element takes exactly one byte, so if the last `*` matched more, even more of the
    // pattern would be left over. Stars take none, but only after some text (see above).
    if !text.is_empty() {
        pattern_at = skip_stars(pattern, pattern_at);
    }
    Some(pattern_at == pattern.len())
}

/// Position of the first byte at or after `at` that is not a `*`.
fn skip_stars(pattern: &[u8], at: usize) -> usize {
    let stars = pattern
        .get(at..)
        .unwrap_or_default()
        .iter()
        .take_while(|&&byte| byte == b'*')
        .count();
    at + stars
}

/// Compares `byte` with the element of the pattern at `at`. Also returns the position after the
/// element. At the end of the pattern nothing matches.
fn match_one(pattern: &[u8], at: usize, byte: u8, case: Case) -> (bool, usize) {
    match *pattern.get(at..).unwrap_or_default() {
        [] => (false, at),
        [b'?', ..] => (true, at + 1),
        [b'[', ..] => {
            let mut is_match = false;
            let (is_negated, next) = read_class(pattern, at + 1, |item| {
                is_match |= item.contains(byte, case);
            });
            (is_match != is_negated, next)
        }
        [b'\\', literal, ..] => (equal(literal, byte, case), at + 2),
        [literal, ..] => (equal(literal, byte, case), at + 1),
    }
}

/// What a class lists.
enum Item {
    /// A byte after a `\`. It is compared literally, even if case is ignored.
    Escaped(u8),
    One(u8),
    /// The ends may be in either order.
    Range(u8, u8),
}

impl Item {
    fn contains(&self, byte: u8, case: Case) -> bool {
        match *self {
            Item::Escaped(literal) => literal == byte,
            Item::One(literal) => equal(literal, byte, case),
            Item::Range(low, high) => in_range(low, high, byte, case),
        }
    }
}

/// Reads the class whose `[` is before `at`. Returns whether it is negated, and the position after
/// it. An unclosed class extends to the end of the pattern.
fn read_class(pattern: &[u8], at: usize, mut each: impl FnMut(Item)) -> (bool, usize) {
    let mut at = at;
    let is_negated = pattern.get(at) == Some(&b'^');
    if is_negated {
        at += 1;
    }
    loop {
        match *pattern.get(at..).unwrap_or_default() {
            [] => break,
            [b'\\', literal, ..] => {
                each(Item::Escaped(literal));
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [low, b'-', high, ..] => {
                each(Item::Range(low, high));
                at += 3;
            }
            [literal, ..] => {
                each(Item::One(literal));
                at += 1;
            }
        }
    }
    (is_negated, at)
}

fn equal(literal: u8, byte: u8, case: Case) -> bool {
    match case {
        Case::Sensitive => literal == byte,
        Case::Insensitive => literal.eq_ignore_ascii_case(&byte),
    }
}

/// Whether `byte` is between the ends, which may be in either order. As in Redis, they are swapped
/// before case is removed.
fn in_range(low: u8, high: u8, byte: u8, case: Case) -> bool {
    let signed = |byte: u8| byte.cast_signed();
    let (low, high) = if signed(low) > signed(high) {
        (high, low)
    } else {
        (low, high)
    };
    let fold = |byte: u8| match case {
        Case::Sensitive => signed(byte),
        Case::Insensitive => signed(byte.to_ascii_lowercase()),
    };
    (fold(low)..=fold(high)).contains(&fold(byte))
}

/// Maximum number of elements in a part that is compared at each position of the text.
const COMPARED_MAX: usize = 16;

/// A new class is compared with this many of the latest ones, and an equal one is shared.
const CLASSES_COMPARED: usize = 64;

/// Elements that a word of a [`Part::Marked`] has bits for.
const WORD_BITS: usize = u64::BITS as usize;

/// A pattern that texts are compared with, each in time in proportion to its length.
#[derive(Debug, Clone)]
pub struct Glob {
    first: Elements,
    /// The parts between the first and the last `*`.
    between: Vec<Part>,
    /// The part after the last `*`. `None` if there is no `*`.
    last: Option<Elements>,
    classes: Vec<ByteSet>,
    /// It has too many `*`.
    matches_nothing: bool,
}

/// What one byte of a text is compared with.
#[derive(Debug, Clone, Copy)]
enum Element {
    Byte(u8),
    Any,
    /// A set of [`Glob::classes`].
    Class(u32),
}

type Elements = Vec<Element>;
type ByteSet = [u64; 4];

/// A part between two `*`, by search method.
#[derive(Debug, Clone)]
enum Part {
    /// It has only bytes.
    Bytes(Box<Finder<'static>>),
    /// Compared at each position. Each byte of the text allows a fixed number of steps.
    Compared(Elements),
    /// Compared at all positions at once. Bit n of a state says that the bytes before a position
    /// match the first `n + 1` elements. The masks say which elements each byte matches.
    Marked { count: usize, masks: Vec<u64> },
}

impl Glob {
    /// Compiles a pattern.
    pub fn new(pattern: &[u8], case: Case) -> Self {
        let mut glob = Self {
            first: Vec::new(),
            between: Vec::new(),
            last: None,
            classes: Vec::new(),
            matches_nothing: false,
        };
        let (first, mut at) = glob.read_part(pattern, 0, case);
        glob.first = first;
        let mut stars = 0;
        while at < pattern.len() {
            at = skip_stars(pattern, at);
            stars += usize::from(at < pattern.len());
            if stars > GLOB_STARS_MAX {
                // The parts so far are not needed, and the rest may be long.
                glob.between = Vec::new();
                glob.matches_nothing = true;
                return glob;
            }
            let (part, next) = glob.read_part(pattern, at, case);
            at = next;
            if let Some(between) = glob.last.replace(part) {
                let part = glob.part(between);
                glob.between.push(part);
            }
        }
        glob
    }

    /// The elements from `at` to the next `*`, and the position of that `*`.
    fn read_part(&mut self, pattern: &[u8], at: usize, case: Case) -> (Elements, usize) {
        let mut elements = Vec::new();
        let mut at = at;
        loop {
            let (element, next) = match *pattern.get(at..).unwrap_or_default() {
                [] | [b'*', ..] => return (elements, at),
                [b'?', ..] => (Element::Any, at + 1),
                [b'[', ..] => {
                    let mut set = ByteSet::default();
                    let (is_negated, next) =
                        read_class(pattern, at + 1, |item| add(&mut set, &item, case));
                    if is_negated {
                        set = set.map(|word| !word);
                    }
                    (self.class(set), next)
                }
                [b'\\', literal, ..] => (self.literal(literal, case), at + 2),
                [literal, ..] => (self.literal(literal, case), at + 1),
            };
            elements.push(element);
            at = next;
        }
    }

    fn literal(&mut self, literal: u8, case: Case) -> Element {
        match case {
            Case::Insensitive if literal.is_ascii_alphabetic() => {
                let mut set = ByteSet::default();
                add(&mut set, &Item::One(literal), case);
                self.class(set)
            }
            _ => Element::Byte(literal),
        }
    }

    fn class(&mut self, set: ByteSet) -> Element {
        // Patterns repeat few classes, and letters of either case are few.
        let latest = self.classes.len().saturating_sub(CLASSES_COMPARED);
        let mut known = self.classes.iter().enumerate().skip(latest);
        let known = known.find_map(|(at, one)| (*one == set).then_some(at));
        let number = known.unwrap_or_else(|| {
            self.classes.push(set);
            self.classes.len() - 1
        });
        // No pattern is so long.
        Element::Class(u32::try_from(number).unwrap_or(u32::MAX))
    }

    fn part(&self, elements: Elements) -> Part {
        let byte = |element: &Element| match element {
            Element::Byte(byte) => Some(*byte),
            _ => None,
        };
        if let Some(bytes) = elements.iter().map(byte).collect::<Option<Vec<u8>>>() {
            return Part::Bytes(Box::new(Finder::new(&bytes).into_owned()));
        }
        let count = elements.len();
        if !(COMPARED_MAX + 1..=GLOB_ELEMENTS_MAX).contains(&count) {
            return Part::Compared(elements);
        }
        let words = count.div_ceil(WORD_BITS);
        let mut masks = vec![0; words * 256];
        for (byte, masks) in (0..=u8::MAX).zip(masks.chunks_exact_mut(words)) {
            for (word, elements) in masks.iter_mut().zip(elements.chunks(WORD_BITS)) {
                for (bit, element) in elements.iter().enumerate() {
                    *word |= u64::from(self.accepts(*element, byte)) << bit;
                }
            }
        }
        Part::Marked { count, masks }
    }

    fn accepts(&self, element: Element, byte: u8) -> bool {
        match element {
            Element::Byte(literal) => literal == byte,
            Element::Any => true,
            Element::Class(number) => {
                let set = usize::try_from(number).ok();
                let set = set.and_then(|number| self.classes.get(number));
                set.is_some_and(|set| contains(set, byte))
            }
        }
    }

    /// Whether a text of the same length matches these elements.
    fn are_equal(&self, elements: &[Element], text: &[u8]) -> bool {
        let mut pairs = elements.iter().zip(text);
        pairs.all(|(element, byte)| self.accepts(*element, *byte))
    }

    /// Whether `text` matches the pattern as a whole.
    pub fn matches(&self, text: &[u8]) -> bool {
        let Some(last) = &self.last else {
            return self.first.len() == text.len() && self.are_equal(&self.first, text);
        };
        let Some((beginning, rest)) = text.split_at_checked(self.first.len()) else {
            return false;
        };
        let Some(middle) = rest.len().checked_sub(last.len()) else {
            return false;
        };
        let (mut middle, end) = rest.split_at(middle);
        if text.is_empty()
            || self.matches_nothing
            || !self.are_equal(&self.first, beginning)
            || !self.are_equal(last, end)
        {
            return false;
        }
        for part in &self.between {
            let after = self.find_end(part, middle);
            match after.and_then(|after| middle.get(after..)) {
                Some(rest) => middle = rest,
                None => return false,
            }
        }
        true
    }

    /// End of the first match of a part.
    fn find_end(&self, part: &Part, text: &[u8]) -> Option<usize> {
        match part {
            Part::Bytes(finder) => finder.find(text).map(|start| start + finder.needle().len()),
            Part::Compared(elements) => self.compare(elements, text),
            Part::Marked { count, masks } => find_marked(*count, masks, text),
        }
    }

    /// Compares at each position. If a part has more than [`GLOB_ELEMENTS_MAX`] elements and is not
    /// found within its steps, it counts as missing.
    fn compare(&self, elements: &[Element], text: &[u8]) -> Option<usize> {
        let mut steps = text.len().saturating_mul(COMPARED_MAX);
        for (start, window) in text.windows(elements.len()).enumerate() {
            let mut pairs = elements.iter().zip(window);
            let matched = pairs.position(|(element, byte)| !self.accepts(*element, *byte));
            match matched {
                None => return Some(start + elements.len()),
                Some(matched) => steps = steps.checked_sub(matched)?,
            }
        }
        None
    }
}

/// End of the first match of a [`Part::Marked`].
fn find_marked(count: usize, masks: &[u64], text: &[u8]) -> Option<usize> {
    let words = count.div_ceil(WORD_BITS);
    let last_bit = (count - 1) % WORD_BITS;
    let mut states = vec![0_u64; words];
    for (at, byte) in text.iter().enumerate() {
        let masks = masks.get(usize::from(*byte) * words..)?;
        // A match may begin at each position.
        let mut carried = 1;
        for (state, mask) in states.iter_mut().zip(masks) {
            let next = (*state << 1) | carried;
            carried = *state >> (WORD_BITS - 1);
            *state = next & mask;
        }
        if states
            .last()
            .is_some_and(|state| state >> last_bit & 1 != 0)
        {
            return Some(at + 1);
        }
    }
    None
}

fn add(set: &mut ByteSet, item: &Item, case: Case) {
    let mut add_byte = |byte: u8| {
        if let Some(word) = set.get_mut(usize::from(byte / 64)) {
            *word |= 1 << (byte % 64);
        }
    };
    match *item {
        Item::Escaped(byte) => add_byte(byte),
        Item::One(literal) => {
            for byte in [literal.to_ascii_lowercase(), literal.to_ascii_uppercase()] {
                if equal(literal, byte, case) {
                    add_byte(byte);
                }
            }
        }
        Item::Range(..) => {
            for byte in 0..=u8::MAX {
                if item.contains(byte, case) {
                    add_byte(byte);
                }
            }
        }
    }
}

fn contains(set: &ByteSet, byte: u8) -> bool {
    let word = set.get(usize::from(byte / 64));
    word.is_some_and(|word| word >> (byte % 64) & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &[u8], text: &[u8], expected: bool) {
        for matched in [
            matches(pattern, text, Case::Sensitive),
            Glob::new(pattern, Case::Sensitive).matches(text),
        ] {
            let shown = |bytes: &[u8]| format!("{:.60}", bytes.escape_ascii().to_string());
            assert_eq!(matched, expected, "{} and {}", shown(pattern), shown(text));
        }
    }

    #[test]
    fn stars_and_question_marks() {
        check(b"*", b"a", true);
        check(b"h?llo", b"hello", true);
        check(b"h?llo", b"hllo", false);
        check(b"h*llo", b"hllo", true);
        check(b"h*llo", b"heeeello", true);
        check(b"a**b***", b"axxb", true);
        check(b"a*b*c", b"abcbc", true);
        check(b"a*b*c", b"abcbd", false);
        check(b"user:*:x", b"user:1:y:x", true);
        check(b"*a?", b"aab", true);
        check(b"ab", b"a", false);
        check(b"a", b"ab", false);
    }

    #[test]
    fn the_empty_text_matches_the_empty_pattern_only() {
        check(b"", b"", true);
        check(b"*", b"", false);
        check(b"", b"a", false);
    }

    #[test]
    fn classes_ranges_and_negation() {
        check(b"h[ae]llo", b"hallo", true);
        check(b"h[^e]llo", b"hello", false);
        check(b"h[a-b]llo", b"hbllo", true);
        check(b"h[b-a]llo", b"hallo", true);
        check(b"[]]", b"]", false);
        check(b"[a-]]", b"b", false);
        check(b"[a-]", b"^", true);
        check(b"[^]", b"a", true);
        check(b"[\\]]", b"]", true);
        check(b"[\\\\]", b"\\", true);
    }

    #[test]
    fn a_class_that_is_not_closed_reaches_to_the_end() {
        check(b"[abc", b"c", true);
        check(b"[", b"[", false);
        check(b"[^", b"x", true);
        check(b"[\\", b"\\", true);
        check(b"[a-", b"-", true);
    }

    #[test]
    fn range_ends_are_signed_bytes() {
        check(b"[a-\xff]", b"a", true);
        check(b"[a-\xff]", b"z", false);
        check(b"[a-\xff]", b"\x05", true);
        check(b"[\x80-\xff]", b"\x90", true);
    }

    #[test]
    fn escapes_make_literals() {
        check(b"\\*", b"*", true);
        check(b"\\*", b"a", false);
        check(b"a\\?", b"a?", true);
        check(b"\\", b"\\", true);
        check(b"a\\", b"a\\", true);
    }

    #[test]
    fn case_is_ignored_on_request_except_for_escaped_class_bytes() {
        let matches = |pattern: &[u8], text: &[u8]| {
            let compiled = Glob::new(pattern, Case::Insensitive).matches(text);
            assert_eq!(matches(pattern, text, Case::Insensitive), compiled);
            compiled
        };
        assert!(matches(b"MAX*", b"maxclients"));
        assert!(matches(b"[A-C]x", b"bX"));
        assert!(matches(b"[Q]", b"q"));
        assert!(!matches(b"[\\Q]", b"q"));
        assert!(matches(b"\\Q", b"q"));
    }

    #[test]
    fn too_many_stars_match_nothing() {
        let text = b"a".repeat(2000);
        check(&b"*a".repeat(1000), &text, true);
        check(&b"*a".repeat(1001), &text, false);
    }

    #[test]
    fn hostile_patterns_take_time_in_proportion_to_their_lengths() {
        let text = b"a".repeat(200_000);
        let many = |bytes: &[u8]| bytes.repeat(100_000);
        let began = std::time::Instant::now();
        for pattern in [
            [b"a*".repeat(900).as_slice(), b"b"].concat(),
            [b"*", many(b"a").as_slice(), b"b"].concat(),
            [b"*", many(b"a").as_slice(), b"b*"].concat(),
            [b"*", many(b"?").as_slice(), b"b"].concat(),
            [b"*", many(b"?").as_slice(), b"b*"].concat(),
            [b"*", b"?".repeat(900).as_slice(), b"b*"].concat(),
            [b"*", b"[ab]?".repeat(400).as_slice(), b"b*"].concat(),
            [b"*[", many(b"c").as_slice(), b"]*b"].concat(),
            [b"*[", many(b"a-c").as_slice(), b"]*b"].concat(),
        ] {
            check(&pattern, &text, false);
        }
        check(&[b"*", many(b"a").as_slice(), b"*"].concat(), &text, true);
        check(&[b"*", many(b"a?").as_slice()].concat(), &text, true);
        // A matcher whose time is the product of both lengths would take minutes.
        assert!(began.elapsed() < std::time::Duration::from_secs(10));
    }

    proptest::proptest! {
        #[test]
        fn a_compiled_pattern_is_the_same_pattern(
            pattern in proptest::collection::vec(
                proptest::sample::select(b"ab*?[]^-\\A\xe1".as_slice()), 0..24),
            text in proptest::collection::vec(
                proptest::sample::select(b"abA-]\xe1".as_slice()), 0..24),
        ) {
            for case in [Case::Sensitive, Case::Insensitive] {
                let simple = matches_within(&pattern, &text, case, usize::MAX);
                let compiled = Glob::new(&pattern, case).matches(&text);
                proptest::prop_assert_eq!(simple, Some(compiled));
            }
        }

        #[test]
        fn a_long_part_between_stars_is_found_where_it_is(
            part in proptest::collection::vec(
                proptest::sample::select(b"ab?".as_slice()), 14..140),
            text in proptest::collection::vec(
                proptest::sample::select(b"aab".as_slice()), 0..300),
            at in 0_usize..150,
        ) {
            let pattern = [b"*", part.as_slice(), b"*"].concat();
            let mut planted = text.clone();
            for (to, from) in planted.iter_mut().skip(at).zip(&part) {
                *to = if *from == b'?' { *to } else { *from };
            }
            for text in [text, planted] {
                let simple = matches_within(&pattern, &text, Case::Sensitive, usize::MAX);
                let compiled = Glob::new(&pattern, Case::Sensitive).matches(&text);
                proptest::prop_assert_eq!(simple, Some(compiled));
            }
        }
    }
}
