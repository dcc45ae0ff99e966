//! Scripts, by the SHA-1 of their text.

use bytes::Bytes;
use foundationdb_tuple::pack_into;

use super::{DecodeError, KeyRange, Layout, Space, corrupt, take, with_byte};

const FORMAT: u8 = 1;

/// The second tuple element of the space. Libraries of functions have the others.
#[repr(u8)]
enum Kind {
    /// `(11, 0)`: how often scripts were flushed.
    Flushes = 0,
    /// `(11, 1, sha)`: a script; `(11, 1, sha, number)`: a piece of its text.
    Scripts = 1,
    /// `(11, 3, at_ms, sha)`: index of the scripts that EVAL has stored.
    ByTime = 3,
}

/// How a script was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ScriptOrigin {
    /// By EVAL. New scripts replace old ones.
    Eval = 0,
    /// By SCRIPT LOAD: it stays.
    Load = 1,
}

/// The content of a script's first row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredScript {
    /// How it was stored.
    pub origin: ScriptOrigin,
    /// When it was stored, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Bytes of its text.
    pub length: u64,
}

impl StoredScript {
    /// The row's value.
    pub fn encode(&self) -> Vec<u8> {
        let mut value = vec![FORMAT];
        pack_into(&(self.origin as u64, self.at_ms, self.length), &mut value);
        value
    }

    /// Reads a row's value.
    ///
    /// # Errors
    /// If the format is unknown.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let Some((&FORMAT, mut rest)) = value.split_first() else {
            return corrupt("format of a script");
        };
        let origin = match take::<u64>(&mut rest, "origin of a script")? {
            0 => ScriptOrigin::Eval,
            1 => ScriptOrigin::Load,
            _ => return corrupt("origin of a script"),
        };
        Ok(Self {
            origin,
            at_ms: take(&mut rest, "time of a script")?,
            length: take(&mut rest, "length of a script")?,
        })
    }
}

impl Layout {
    /// The counter of flushes of scripts.
    pub fn script_flushes_key(&self) -> Vec<u8> {
        self.pack(Space::Scripts, &(Kind::Flushes as u64,))
    }

    /// A script's first row.
    pub fn script_key(&self, sha: &str) -> Vec<u8> {
        self.pack(Space::Scripts, &(Kind::Scripts as u64, sha))
    }

    /// A piece of a script's text.
    pub fn script_piece_key(&self, sha: &str, number: u64) -> Vec<u8> {
        self.pack(Space::Scripts, &(Kind::Scripts as u64, sha, number))
    }

    /// All rows of a script.
    pub fn script_rows(&self, sha: &str) -> KeyRange {
        let begin = self.script_key(sha);
        KeyRange {
            end: with_byte(&begin, 0xff),
            begin,
        }
    }

    /// All scripts, without their index.
    pub fn all_scripts(&self) -> KeyRange {
        KeyRange::children(&self.pack(Space::Scripts, &(Kind::Scripts as u64,)))
    }

    /// Entry of the index of scripts that EVAL has stored.
    pub fn script_by_time_key(&self, at_ms: i64, sha: &str) -> Vec<u8> {
        self.pack(Space::Scripts, &(Kind::ByTime as u64, at_ms, sha))
    }

    /// That index, the oldest first.
    pub fn scripts_by_time(&self) -> KeyRange {
        KeyRange::children(&self.pack(Space::Scripts, &(Kind::ByTime as u64,)))
    }

    /// The SHA-1 in a key of that index.
    ///
    /// # Errors
    /// If the key is not one.
    pub fn read_script_by_time(&self, key: &Bytes) -> Result<String, DecodeError> {
        let mut rest = self.strip(Space::Scripts, key)?;
        let _: u64 = take(&mut rest, "kind of a script's row")?;
        let _: i64 = take(&mut rest, "time of a script")?;
        take(&mut rest, "name of a script")
    }
}
