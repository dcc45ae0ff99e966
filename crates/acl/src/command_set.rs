//! A set of commands and subcommands, by their places in the command table.

use quoin_data::table;

/// A set of commands and subcommands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CommandSet {
    words: Vec<u64>,
}

impl CommandSet {
    /// All commands.
    pub(super) fn all() -> Self {
        let words = table::all().len().div_ceil(64);
        Self {
            words: vec![u64::MAX; words],
        }
    }

    pub(super) fn contains(&self, id: usize) -> bool {
        let word = self.words.get(id / 64).copied().unwrap_or(0);
        word & (1 << (id % 64)) != 0
    }

    pub(super) fn set(&mut self, id: usize, is_in: bool) {
        if self.words.len() <= id / 64 {
            self.words.resize(id / 64 + 1, 0);
        }
        if let Some(word) = self.words.get_mut(id / 64) {
            let bit = 1 << (id % 64);
            match is_in {
                true => *word |= bit,
                false => *word &= !bit,
            }
        }
    }
}
