//! What is known of its keys to a command that takes from the first of them that has something.

use std::collections::HashSet;

use bytes::Bytes;

/// What is known of a command's keys before it runs. What is not known, the command looks up.
#[derive(Debug, Clone, Copy, Default)]
pub enum KnownKeys<'k> {
    /// Nothing.
    #[default]
    Nothing,
    /// Only these may have something. The command leaves the others out.
    OnlyThese(&'k HashSet<Bytes>),
    /// These were empty a moment ago. The command looks at them only if it finds something in
    /// another key, and a key before that might have got something meanwhile.
    WereEmpty(&'k HashSet<Bytes>),
}

impl KnownKeys<'_> {
    /// Whether the command leaves a key out.
    pub fn leaves_out(self, key: &Bytes) -> bool {
        match self {
            KnownKeys::OnlyThese(keys) => !keys.contains(key),
            KnownKeys::Nothing | KnownKeys::WereEmpty(_) => false,
        }
    }

    /// Whether a key was empty a moment ago.
    pub fn was_empty(self, key: &Bytes) -> bool {
        match self {
            KnownKeys::WereEmpty(keys) => keys.contains(key),
            KnownKeys::Nothing | KnownKeys::OnlyThese(_) => false,
        }
    }
}
