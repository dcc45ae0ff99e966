//! Pushes: elements that one unit of work pushes at one end lie in runs.

use bytes::Bytes;

use super::End;
use super::rows::rows_of;
use crate::layout::{
    ListValue, Position, RUN_BYTES_MAX, RUN_ELEMENT_BYTES_MAX, RUN_ELEMENTS_MAX, Run, StoredValue,
};
use crate::store::{Isolation, KeyValue, StoreError};
use crate::types::context::WriteContext;
use crate::types::key::OpenKey;

/// The last number of the position of a run that grows to the left. Its rightmost element is at 0.
const LEFT_RUN_START: i64 = 1 - RUN_ELEMENTS_MAX as i64;

impl WriteContext<'_> {
    /// Adds values at one end, the first of them first (so that LPUSH a b leaves b in front),
    /// and answers the new length as this transaction sees it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_push<'v>(
        &self,
        key: &OpenKey,
        values: impl IntoIterator<Item = &'v Bytes>,
        end: End,
    ) -> Result<i64, StoreError> {
        let (range, prefix_length) = rows_of(self, key.data());
        let outermost = self
            .outermost(&range, end == End::Right, Isolation::Snapshot)
            .await?;
        let next_index = match &outermost {
            // Not the same for both ends: where two servers push to an empty list at the same
            // moment, what goes to the head stands in front of what goes to the tail.
            None if end == End::Left => -1,
            None => 0,
            Some(row) => end.beyond(Position::read_index(prefix_length, &row.key)?),
        };
        let mut pushing = Pushing {
            context: self,
            key,
            end,
            random: self.unit_position_random(),
            next_index,
            run: PushedRun::default(),
        };
        if let Some(row) = &outermost {
            pushing.resume(prefix_length, row)?;
        }
        let mut count = 0;
        for value in values {
            count += 1;
            pushing.push(value);
        }
        pushing.write_run();
        self.add_length(key, count);
        self.length(key, Isolation::Snapshot).await
    }
}

impl End {
    /// The index that comes next.
    fn beyond(self, index: i64) -> i64 {
        match self {
            End::Left => index - 1,
            End::Right => index + 1,
        }
    }
}

/// The rows of one push.
struct Pushing<'c, 't> {
    context: &'c WriteContext<'t>,
    key: &'c OpenKey,
    end: End,
    random: i64,
    /// The index of the next row.
    next_index: i64,
    run: PushedRun,
}

/// The run to which elements are being added.
#[derive(Default)]
struct PushedRun {
    /// In the order in which they are pushed: from right to left where they go to the head.
    elements: Vec<Bytes>,
    /// What they take in the row.
    bytes: usize,
    /// Places of the run beyond the first of them. They stay free.
    unused: usize,
    /// The key of the run's row, if there is one already, and how many of the elements it holds.
    row: Option<(Bytes, usize)>,
}

impl PushedRun {
    fn has_room(&self, element: &Bytes) -> bool {
        self.unused + self.elements.len() < RUN_ELEMENTS_MAX
            && self.bytes + Run::bytes_of(element.len()) <= RUN_BYTES_MAX
    }

    fn push(&mut self, element: Bytes) {
        self.bytes += Run::bytes_of(element.len());
        self.elements.push(element);
    }
}

impl Pushing<'_, '_> {
    /// Goes on with the outermost row if this unit of work has pushed it, so that the commands of a
    /// batch share rows.
    fn resume(&mut self, prefix_length: usize, outermost: &KeyValue) -> Result<(), StoreError> {
        // There, the rows of all units have the same random number. Commands run in series.
        if self.context.environment.capabilities.single_writer {
            return Ok(());
        }
        let layout = self.context.layout();
        let position = layout.read_position(prefix_length, &outermost.key)?;
        if !matches!(position.0[..], [_, random, _] if random == self.random) {
            return Ok(());
        }
        let (skipped, mut elements) = match ListValue::decode(&outermost.value)? {
            ListValue::Run(run) => (run.skipped(), run.elements().collect()),
            // There is no place to its left.
            ListValue::One(StoredValue::Plain(element))
                if self.end == End::Right && element.len() <= RUN_ELEMENT_BYTES_MAX =>
            {
                (0, vec![element])
            }
            ListValue::One(_) => return Ok(()),
        };
        self.run.row = Some((outermost.key.clone(), elements.len()));
        self.run.unused = match self.end {
            End::Left => {
                elements.reverse();
                RUN_ELEMENTS_MAX - skipped - elements.len()
            }
            End::Right => skipped,
        };
        for element in elements {
            self.run.push(element);
        }
        Ok(())
    }

    fn push(&mut self, element: &Bytes) {
        if element.len() > RUN_ELEMENT_BYTES_MAX {
            self.write_run();
            let value = self.context.store_value(self.key.data(), element);
            self.write_row(0, &value, 1);
            return;
        }
        if !self.run.has_room(element) {
            self.write_run();
        }
        self.run.push(element.clone());
    }

    /// Writes the run, and begins another.
    fn write_run(&mut self) {
        let PushedRun {
            elements,
            unused,
            row,
            ..
        } = std::mem::take(&mut self.run);
        let count = elements.len();
        let may_grow_left =
            self.end == End::Left && !self.context.environment.capabilities.single_writer;
        let (start, value) = match (self.end, elements.as_slice()) {
            (_, []) => return,
            (_, [element]) if row.is_none() && !may_grow_left => {
                (0, StoredValue::encode_plain(element))
            }
            (End::Right, elements) => (0, Run::new(unused, elements).encode()),
            (End::Left, elements) => {
                let skipped = RUN_ELEMENTS_MAX - unused - elements.len();
                let leftmost_first = elements.iter().rev();
                (LEFT_RUN_START, Run::new(skipped, leftmost_first).encode())
            }
        };
        match row {
            Some((row, before)) => {
                self.context.transaction.set(&row, &value);
                self.context.list_note(self.key, &row, before, count);
            }
            None => self.write_row(start, &value, count),
        }
    }

    /// Writes a row of so many elements beyond the outermost one.
    fn write_row(&mut self, start: i64, value: &[u8], count: usize) {
        let mut row = self.context.layout().elements_prefix(self.key.data());
        Position::pack_pushed(self.next_index, self.random, start, &mut row);
        self.context.transaction.set(&row, value);
        self.context.list_note(self.key, &row, 0, count);
        self.next_index = self.end.beyond(self.next_index);
    }
}
