//! Reading ahead for a script, and noting what it reads (`types/script_reads.rs`).

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;

use crate::unit::Unit;
use crate::unit::script_reads::READS_MAX;
use quoin_lua::Program;

/// A script whose reads are noted.
pub(super) struct Reading {
    /// Stands for the script and its keys.
    call: u64,
    /// Stands for its other arguments.
    arguments: u64,
}

impl Reading {
    /// Reads what the script has read before, on a store whose reads are round trips.
    pub(super) async fn begin(
        unit: &Unit<'_>,
        database: u32,
        program: &Program,
        keys: &[Bytes],
        arguments: &[Bytes],
    ) -> Option<Self> {
        let environment = unit.environment();
        if environment.capabilities.single_writer {
            return None;
        }
        let reading = Self {
            call: hash_of(&(program.name(), database, keys)),
            arguments: hash_of(&arguments),
        };
        let reads = &environment.script_reads;
        let expected = reads.expected(reading.call, reading.arguments);
        unit.write_context(database).read_ahead(&expected).await;
        unit.transaction.note_reads(READS_MAX);
        Some(reading)
    }

    /// Remembers what it has read.
    pub(super) fn end(self, unit: &Unit<'_>) {
        let reads = unit.transaction.take_noted_reads();
        let known = &unit.environment().script_reads;
        known.remember(self.call, self.arguments, reads);
    }
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
