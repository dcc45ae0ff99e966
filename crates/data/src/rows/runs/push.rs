//! Pushes: elements that one unit of work pushes at one end lie in runs.

use bytes::Bytes;

use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_layout::{
    ElementsValue, RUN_BYTES_MAX, RUN_ELEMENT_BYTES_MAX, RUN_ELEMENTS_MAX, Run, StoredValue,
};
use quoin_store::{KeyValue, StoreError};

/// The last number of the place of a run that grows to the left. Its rightmost element is at 0.
const LEFT_RUN_START: i64 = 1 - RUN_ELEMENTS_MAX as i64;

/// The rows of one push.
pub(crate) struct Pushing<'c, 't, K> {
    context: &'c WriteContext<'t>,
    key: &'c OpenKey,
    to_start: bool,
    next_index: i64,
    /// The key of a row, from its index and the last number of its place.
    row_key: K,
    run: PushedRun,
}

/// The run to which elements are being added.
#[derive(Default)]
struct PushedRun {
    /// In the order in which they are pushed: from the last to the first where they go to the start.
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

impl<'c, 't, K: Fn(i64, i64) -> Vec<u8>> Pushing<'c, 't, K> {
    /// A push at the start or at the end of a value. The first row gets `next_index`, and each that
    /// comes after it the one beyond.
    pub(crate) fn new(
        context: &'c WriteContext<'t>,
        key: &'c OpenKey,
        to_start: bool,
        next_index: i64,
        row_key: K,
    ) -> Self {
        Self {
            context,
            key,
            to_start,
            next_index,
            row_key,
            run: PushedRun::default(),
        }
    }

    /// Goes on with the outermost row, which this unit of work has pushed, so that the commands of a
    /// batch share rows.
    ///
    /// # Errors
    /// Where the row cannot be read.
    pub(crate) fn resume(&mut self, outermost: KeyValue) -> Result<(), StoreError> {
        let (skipped, mut elements) = match ElementsValue::decode(&outermost.value)? {
            ElementsValue::Run(run) => (run.skipped(), run.elements().collect()),
            // There is no place to its left.
            ElementsValue::One(StoredValue::Plain(element))
                if !self.to_start && element.len() <= RUN_ELEMENT_BYTES_MAX =>
            {
                (0, vec![element])
            }
            ElementsValue::One(_) => return Ok(()),
        };
        self.run.row = Some((outermost.key, elements.len()));
        self.run.unused = match self.to_start {
            true => {
                elements.reverse();
                RUN_ELEMENTS_MAX - skipped - elements.len()
            }
            false => skipped,
        };
        for element in elements {
            self.run.push(element);
        }
        Ok(())
    }

    /// Adds an element.
    pub(crate) fn push(&mut self, element: &Bytes) {
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

    /// Writes what is not written yet. Returns the index that the next row gets.
    pub(crate) fn end(mut self) -> i64 {
        self.write_run();
        self.next_index
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
        let may_grow_left = self.to_start && !self.context.environment.capabilities.single_writer;
        let (start, value) = match (self.to_start, elements.as_slice()) {
            (_, []) => return,
            (_, [element]) if row.is_none() && !may_grow_left => {
                (0, StoredValue::encode_plain(element))
            }
            (false, elements) => (0, Run::new(unused, elements).encode()),
            (true, elements) => {
                let skipped = RUN_ELEMENTS_MAX - unused - elements.len();
                let leftmost_first = elements.iter().rev();
                (LEFT_RUN_START, Run::new(skipped, leftmost_first).encode())
            }
        };
        match row {
            Some((row, before)) => {
                self.context.transaction.set(&row, &value);
                self.context.note_elements(self.key, &row, before, count);
            }
            None => self.write_row(start, &value, count),
        }
    }

    /// Writes a row of so many elements beyond the outermost one.
    fn write_row(&mut self, start: i64, value: &[u8], count: usize) {
        let row = (self.row_key)(self.next_index, start);
        self.context.transaction.set(&row, value);
        self.context.note_elements(self.key, &row, 0, count);
        let step = if self.to_start { -1 } else { 1 };
        self.next_index = self.next_index.saturating_add(step);
    }
}
