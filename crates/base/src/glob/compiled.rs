//! A pattern that is compiled: its parts between the `*`.
//!
//! Every element of a part takes one byte. So the first part stands at the text's beginning and the last
//! at its end, and each part between is looked for after the one before it.

use memchr::memmem::Finder;

use super::{Case, Item, equal, read_class, skip_stars};
use crate::limits::{GLOB_ELEMENTS_MAX, GLOB_STARS_MAX};

/// Elements up to which a part is compared at each place of the text.
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
    /// The part after the last `*`; `None` where there is no `*`.
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

/// A part between two `*`, by how it is looked for.
#[derive(Debug, Clone)]
enum Part {
    /// It has only bytes.
    Bytes(Box<Finder<'static>>),
    /// It is compared at each place. Each byte of the text allows a fixed number of steps.
    Compared(Elements),
    /// All places are compared at once: bit n of a state says that the bytes before a place match
    /// the first n + 1 elements. The masks, by bytes, say which elements a byte matches.
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
                // What it has so far is not needed, and the rest may be long.
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

    /// The elements from `at` to the next `*`, and where that is.
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

    /// Whether a text of as many bytes matches them.
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

    /// Where the first match of a part ends.
    fn find_end(&self, part: &Part, text: &[u8]) -> Option<usize> {
        match part {
            Part::Bytes(finder) => finder.find(text).map(|start| start + finder.needle().len()),
            Part::Compared(elements) => self.compare(elements, text),
            Part::Marked { count, masks } => find_marked(*count, masks, text),
        }
    }

    /// Compares at each place. A part of more than [`GLOB_ELEMENTS_MAX`] that this does not find within
    /// its steps counts as not there.
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

/// Where the first match of a [`Part::Marked`] ends.
fn find_marked(count: usize, masks: &[u64], text: &[u8]) -> Option<usize> {
    let words = count.div_ceil(WORD_BITS);
    let last_bit = (count - 1) % WORD_BITS;
    let mut states = vec![0_u64; words];
    for (at, byte) in text.iter().enumerate() {
        let masks = masks.get(usize::from(*byte) * words..)?;
        // A match begins at each place.
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
