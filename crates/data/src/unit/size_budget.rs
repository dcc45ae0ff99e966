//! What a transaction can hold, for commands that could produce a lot before the store refuses it.

use crate::error::CommandError;
use quoin_base::limits::INLINE_NAME_BYTES_MAX;

use crate::unit::context::ReadContext;

/// Minimum bytes that a list element takes in addition to its own: its length, when packed with others into one row.
/// These minimums allow refusing commands that cannot fit into a transaction, before they produce anything.
const LIST_ELEMENT_BYTES_MIN: usize = 1;
/// Minimum bytes that a member of a sorted set takes in its two rows in addition to its own.
const SET_MEMBER_BYTES_MIN: usize = 48;
/// Minimum bytes that a task takes in its two rows in addition to its id and payload.
const TASK_BYTES_MIN: usize = 64;

/// An upper limit for what a transaction can still hold. Each `take` method subtracts the minimum size of the rows, so
/// nothing is refused that would have fit.
#[derive(Debug)]
pub struct SizeBudget {
    /// The bytes left.
    pub left_bytes: usize,
}

impl ReadContext<'_> {
    /// The budget of a transaction without writes.
    pub fn size_budget(&self) -> SizeBudget {
        SizeBudget {
            left_bytes: self.environment.capabilities.transaction_bytes_max,
        }
    }
}

impl SizeBudget {
    /// Takes the bytes of a list element.
    ///
    /// # Errors
    /// `TooLarge` if they do not fit.
    pub fn take_element(&mut self, element_bytes: usize) -> Result<(), CommandError> {
        self.take_elements(element_bytes, 1)
    }

    /// Takes the bytes of `count` equal list elements.
    ///
    /// # Errors
    /// Like [`Self::take_element`].
    pub fn take_elements(
        &mut self,
        element_bytes: usize,
        count: usize,
    ) -> Result<(), CommandError> {
        self.take(
            element_bytes
                .saturating_add(LIST_ELEMENT_BYTES_MIN)
                .saturating_mul(count),
        )
    }

    /// Takes the bytes of a sorted set's member: one row by score, and one by name.
    ///
    /// # Errors
    /// Like [`Self::take_element`].
    pub fn take_member(&mut self, member_bytes: usize) -> Result<(), CommandError> {
        // Both rows contain it, but only one the end of a long member.
        let repeated_bytes = member_bytes.min(INLINE_NAME_BYTES_MAX);
        self.take(
            member_bytes
                .saturating_add(repeated_bytes)
                .saturating_add(SET_MEMBER_BYTES_MIN),
        )
    }

    /// Takes the bytes of a hash field, or of a set member, which has no value.
    ///
    /// # Errors
    /// Like [`Self::take_element`].
    pub fn take_field(
        &mut self,
        name_bytes: usize,
        value_bytes: usize,
    ) -> Result<(), CommandError> {
        // A small value adds only lengths.
        self.take(name_bytes.saturating_add(value_bytes).saturating_add(1))
    }

    /// Takes the bytes of a task: its own row, and one to find it.
    ///
    /// # Errors
    /// Like [`Self::take_element`].
    pub fn take_task(&mut self, id_bytes: usize, payload_bytes: usize) -> Result<(), CommandError> {
        // Both rows contain the id.
        self.take(
            id_bytes
                .saturating_mul(2)
                .saturating_add(payload_bytes)
                .saturating_add(TASK_BYTES_MIN),
        )
    }

    /// Takes the bytes of a string. Zeros at its end or inside may take no space.
    ///
    /// # Errors
    /// Like [`Self::take_element`].
    pub fn take_string(&mut self, string: &[u8]) -> Result<(), CommandError> {
        self.take(string.iter().filter(|byte| **byte != 0).count())
    }

    fn take(&mut self, bytes: usize) -> Result<(), CommandError> {
        self.left_bytes = self
            .left_bytes
            .checked_sub(bytes)
            .ok_or(CommandError::TooLarge)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use quoin_data::list::{End, ListMut};
    use quoin_data::unit::context::NamespaceCache;
    use quoin_data::unit::context::WriteContext;
    use quoin_data::unit::signals::Signals;
    use quoin_data::zset::{self, ScoredMember};
    use quoin_engine::testing::Bench;
    use quoin_layout::ValueType;

    /// How much the budget shrinks and the transaction grows for a value whose elements or members have this many
    /// bytes.
    fn taken_and_written(bench: &Bench, value_type: ValueType, bytes: usize) -> (usize, usize) {
        const COUNT: usize = 50;
        let transaction = bench.store.begin_write().unwrap();
        let (namespaces, signals) = (NamespaceCache::default(), Signals::default());
        let environment = bench.executor.environment();
        let context = WriteContext::new(&*transaction, environment, &namespaces, &signals, 0, 0);
        let mut budget = context.size_budget();
        let whole_bytes = budget.left_bytes;
        let values: Vec<Bytes> = (0..COUNT)
            .map(|number| format!("{number:03}{}", "x".repeat(bytes - 3)).into())
            .collect();
        bench.block_on(async {
            let name = Bytes::from_static(b"key");
            let key = context.create(&name, value_type, None).await.unwrap();
            let empty_bytes = transaction.size_bytes();
            if value_type == ValueType::List {
                budget.take_elements(bytes, COUNT).unwrap();
                let list = ListMut::open(&context, &key);
                list.push(&values, End::Right).await.unwrap();
            } else {
                let members: Vec<ScoredMember> = values
                    .into_iter()
                    .inspect(|member| budget.take_member(member.len()).unwrap())
                    .map(|member| ScoredMember { member, score: 1.0 })
                    .collect();
                zset::store(&context, &name, &members).await.unwrap();
            }
            let taken = whole_bytes - budget.left_bytes;
            (taken, transaction.size_bytes() - empty_bytes)
        })
    }

    fn for_values_of_all_lengths(bench: &Bench, check: impl Fn(usize, usize) -> bool) {
        for value_type in [ValueType::List, ValueType::SortedSet] {
            for bytes in [3, 100, 900, 5_000, 100_000] {
                let (taken, written) = taken_and_written(bench, value_type, bytes);
                assert!(
                    check(taken, written),
                    "{value_type:?} of {bytes}: {taken} of {written}"
                );
            }
        }
    }

    #[test]
    fn no_more_is_taken_than_is_written() {
        for bench in [Bench::embedded(), Bench::cluster_like()] {
            for_values_of_all_lengths(&bench, |taken, written| taken <= written);
        }
    }

    #[test]
    fn on_one_server_little_less_is_taken_than_is_written() {
        for_values_of_all_lengths(&Bench::embedded(), |taken, written| {
            3 * taken >= 2 * written
        });
    }
}
