//! How `quoin import` copies values of a type: the commands that read and write them.
//!
//! Values are read as words. An element consists of one or more words. (The elements of a string are its bytes, and one
//! word holds many of them.)

use bytes::Bytes;

/// How values of a type are copied.
#[derive(Debug)]
pub struct Import {
    /// The command that counts the elements.
    pub counting: &'static [u8],
    /// How elements are read.
    pub reading: Reading,
    /// The command that reads a small value in one call, if it differs.
    pub reading_whole: Option<&'static [u8]>,
    /// Words per element.
    pub element_words: usize,
    /// Counts the elements in these words.
    pub elements_in: fn(&[Vec<u8>]) -> usize,
    /// Whether each byte of a word is an element.
    pub elements_are_bytes: bool,
    /// The command that appends elements.
    pub adding: &'static [u8],
    /// Whether that command takes the words of an element in reverse order.
    pub adds_reversed: bool,
    /// Whether only Quoin has the type.
    pub is_own: bool,
    /// Whether some keys of the type exist without elements, although others cease to exist with
    /// the last one.
    pub may_be_empty: bool,
    /// Builds a payload for RESTORE; `None` if a word is invalid.
    pub payload: fn(Vec<Vec<u8>>) -> Option<Bytes>,
}

/// How the elements of a value are read.
#[derive(Debug)]
pub enum Reading {
    /// By rank: the command, and the arguments after the ranks.
    Ranks(&'static [u8], &'static [&'static [u8]]),
    /// In no order, with possible duplicates: the iteration command.
    Iteration(&'static [u8]),
    /// Whole, whatever the size, as the payload that `reading_whole` returns. A large payload is written in parts.
    Dump,
}
