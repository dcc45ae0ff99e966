//! How `quoin import` copies values of a type: the commands that read and write them.
//!
//! Values are read as words. An element is one or several of them. (The elements of a string are its bytes, of which a
//! word holds many.)

use bytes::Bytes;

/// How values of a type are copied.
#[derive(Debug)]
pub struct Import {
    /// The command that counts elements.
    pub counting: &'static [u8],
    /// How elements are read.
    pub reading: Reading,
    /// The command that reads a small value at once, if that is another.
    pub reading_whole: Option<&'static [u8]>,
    /// Words of one element.
    pub element_words: usize,
    /// How many elements words hold.
    pub elements_in: fn(&[Vec<u8>]) -> usize,
    /// Whether an element is a byte of a word.
    pub elements_are_bytes: bool,
    /// The command that adds elements at the end.
    pub adding: &'static [u8],
    /// Whether that takes the words of an element in the opposite order.
    pub adds_reversed: bool,
    /// Whether only a Quoin has the type.
    pub is_own: bool,
    /// A payload for RESTORE; `None` if a word is not what it should be.
    pub payload: fn(Vec<Vec<u8>>) -> Option<Bytes>,
}

/// How the elements of a value are read.
#[derive(Debug)]
pub enum Reading {
    /// From one rank to another: the command, and what follows the ranks.
    Ranks(&'static [u8], &'static [&'static [u8]]),
    /// In no order, some of them twice: the command that iterates.
    Iteration(&'static [u8]),
    /// Whole, however large, as the payload that `reading_whole` answers. A large one is written in parts.
    Dump,
}
