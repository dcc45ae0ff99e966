//! What a transaction has written and read so far.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::cache::{Lookup, ReadCache};
use super::coverage::{Coverage, Replaced};
use super::entry::AtomicOp;
use super::undo::{Log, Mark, Undo};
use super::writes::{Writes, Written};
use crate::rules::key_after;
use crate::{Isolation, RangeQuery, Savepoint};

/// What the transaction has done so far.
#[derive(Default)]
pub(super) struct State {
    pub(super) cache: ReadCache,
    pub(super) writes: Writes,
    /// What it conflicts on.
    pub(super) conflicts: Coverage,
    pub(super) mutation_count: u64,
    /// It also conflicts on rows that only it has set.
    pub(super) conflicts_on_own_rows: bool,
    /// Conflicts that apply unless all of the transaction's own rows in a section are cleared. By
    /// the beginning of the section, which the snapshot has nothing in.
    pub(super) conditional: BTreeMap<Vec<u8>, Coverage>,
    /// Ranges in which the transaction cleared its own rows. They need no clear in the store: the
    /// snapshot has nothing there, and no other transaction sets the same keys without a conflict.
    pub(super) own_rows: Coverage,
    pub(super) log: Log,
}

impl State {
    /// A key's value, if it is known.
    pub(super) fn value(&mut self, key: &[u8], isolation: Isolation) -> Option<Option<Bytes>> {
        let written = self.writes.written(key);
        // A value that the transaction has written itself depends on no other transaction.
        if let Written::Value(value) = written {
            return Some(value);
        }
        let Some(read) = self.cache.key_mut(key) else {
            let value = self.cache.row(key)?;
            if isolation == Isolation::Serializable {
                self.conflicts.add(key, &key_after(key));
            }
            return Some(value);
        };
        if isolation == Isolation::Serializable && !read.has_conflict {
            read.has_conflict = true;
            self.conflicts.add(key, &key_after(key));
        }
        Some(written.apply_to(read.value.as_ref()))
    }

    /// A range's rows, if they are known. A serializable read conflicts on all that it covers,
    /// including the transaction's own writes.
    pub(super) fn rows(&mut self, query: &RangeQuery<'_>) -> Lookup {
        let lookup = self.cache.look_up(query);
        if let (Lookup::Found(rows), Isolation::Serializable) = (&lookup, query.isolation) {
            match rows.last().filter(|_| rows.len() >= query.limit) {
                None => self.conflicts.add(query.begin, query.end),
                Some(last) if query.reverse => self.conflicts.add(&last.key, query.end),
                Some(last) => self.conflicts.add(query.begin, &key_after(&last.key)),
            }
        }
        lookup
    }

    /// Notes that the transaction's own rows in `range` are about to be cleared. The snapshot has
    /// nothing in the section.
    pub(super) fn note_own_rows(&mut self, section: (&[u8], &[u8]), range: (&[u8], &[u8])) {
        if self.log.is_open() {
            self.own_rows.add_logged(range.0, range.1, |begin, end| {
                self.log.log(Undo::OwnRows(Replaced::new(begin, end)));
            });
        } else {
            self.own_rows.add(range.0, range.1);
        }
        let is_all =
            self.cache.is_empty(section.0, range.0) && self.cache.is_empty(range.1, section.1);
        if !is_all {
            let of_section = self.conditional.entry(section.0.to_vec()).or_default();
            of_section.add(range.0, range.1);
        } else if let Some((section, before)) = self.conditional.remove_entry(section.0) {
            self.log.log(Undo::Conditional(section, before));
        }
    }

    pub(super) fn write(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.mutation_count += 1;
        let key = self.writes.copy(key);
        let value = value.map(|value| self.writes.copy(value));
        self.cache.write(&key, value.as_ref());
        self.writes.write(key, value, &mut self.log);
    }

    pub(super) fn apply(&mut self, key: &[u8], operation: AtomicOp) {
        self.mutation_count += 1;
        self.cache.apply(key, operation);
        self.writes.apply(key, operation, &mut self.log);
    }

    /// Opens a savepoint.
    pub(super) fn savepoint(&mut self) -> Savepoint {
        let mutation_count = self.mutation_count;
        self.log.savepoint(Mark { mutation_count })
    }

    /// Undoes what was written since a savepoint. Conflicts stay.
    pub(super) fn rollback(&mut self, savepoint: Savepoint) {
        let Self {
            log,
            writes,
            own_rows,
            conditional,
            ..
        } = self;
        let mark = log.rollback(savepoint, |undo| match undo {
            Undo::Entry(key, before) => writes.undo_entry(key, before),
            Undo::Operation(key, last) => writes.undo_operation(&key, last),
            Undo::Cleared(replaced) => writes.undo_cleared(replaced),
            Undo::Append => writes.undo_append(),
            Undo::OwnRows(replaced) => own_rows.restore(replaced),
            // Conditional conflicts that were added since stay too.
            Undo::Conditional(section, before) => {
                let ranges = conditional.entry(section).or_default();
                before
                    .iter()
                    .for_each(|(begin, end)| ranges.add(begin, end));
            }
        });
        let Some(mark) = mark else { return };
        if self.mutation_count != mark.mutation_count {
            self.mutation_count = mark.mutation_count;
            self.cache.forget_ranges();
        }
    }
}
