//! Elements off a queue of any type, and back to where they were.

use crate::error::CommandError;
use crate::layout::{KeyRange, QueuePlace, Section, StagedElement, ValueType, successor};
use crate::store::{Isolation, StoreError};
use crate::types::context::WriteContext;
use crate::types::key::OpenKey;
use crate::types::list::End;
use crate::types::sorted_set::{AddOptions, Extreme, ScoredMember};

impl WriteContext<'_> {
    /// Pops up to `count` elements.
    pub(super) async fn take_elements(
        &self,
        key: &OpenKey,
        from_end: bool,
        count: usize,
    ) -> Result<Vec<StagedElement>, StoreError> {
        let extreme = if from_end { Extreme::Max } else { Extreme::Min };
        match key.meta.value_type {
            ValueType::List => {
                let end = if from_end { End::Right } else { End::Left };
                self.list_pop_placed(key, count, end).await
            }
            ValueType::SortedSet => {
                let members = self.zset_pop(key, count, extreme).await?;
                Ok(members.into_iter().map(StagedElement::from).collect())
            }
            ValueType::PriorityQueue => self.queue_pop_placed(key, count, extreme).await,
            // Tasks are not popped from an end.
            ValueType::TaskQueue => Ok(Vec::new()),
        }
    }

    /// Puts elements back that were popped in this order, in front of those that are there, and
    /// answers how many there are more now. A member that was added to a sorted set anew meanwhile
    /// stays as it is.
    pub(super) async fn put_back(
        &self,
        key: &OpenKey,
        elements: Vec<StagedElement>,
        from_end: bool,
    ) -> Result<i64, CommandError> {
        match key.meta.value_type {
            ValueType::List => self.put_back_in_list(key, &elements, from_end).await?,
            ValueType::PriorityQueue => {
                for of_one in elements.chunk_by(|one, next| self.is_of_priority(one, next)) {
                    self.put_back_in_queue(key, of_one).await?;
                }
            }
            ValueType::SortedSet => {
                let members = elements.into_iter().map(ScoredMember::try_from);
                let members: Vec<ScoredMember> = members.collect::<Result<_, _>>()?;
                let only_new = AddOptions {
                    only_new: true,
                    ..AddOptions::default()
                };
                return Ok(self.zset_add(key, &members, only_new).await?.added);
            }
            ValueType::TaskQueue => return Ok(0),
        }
        Ok(i64::try_from(elements.len()).unwrap_or(i64::MAX))
    }

    /// At their old places, unless the list was empty meanwhile and has begun anew in front of
    /// those.
    async fn put_back_in_list(
        &self,
        key: &OpenKey,
        elements: &[StagedElement],
        from_end: bool,
    ) -> Result<(), StoreError> {
        let prefix = self.layout().section_prefix(key.data(), Section::Elements);
        let first = self
            .outermost(&KeyRange::children(&prefix), from_end, Isolation::Snapshot)
            .await?;
        let last = elements.last().map(|last| row_key(&prefix, last));
        let are_outside = match (&first, &last) {
            (Some(first), Some(last)) if from_end => last.as_slice() > first.key.as_ref(),
            (Some(first), Some(last)) => last.as_slice() < first.key.as_ref(),
            _ => true,
        };
        if !are_outside {
            let end = if from_end { End::Right } else { End::Left };
            let values = elements.iter().rev().map(|element| element.value.clone());
            self.list_push(key, &values.collect::<Vec<_>>(), end)
                .await?;
            return Ok(());
        }
        for element in elements {
            let row = row_key(&prefix, element);
            // An LINSERT between the same neighbours comes to the same place.
            self.transaction
                .add_read_conflict_range(&row, &successor(&row));
            let value = self.store_value(key.data(), &element.value);
            self.transaction.set(&row, &value);
        }
        self.add_length(key, i64::try_from(elements.len()).unwrap_or(i64::MAX));
        Ok(())
    }

    fn is_of_priority(&self, one: &StagedElement, other: &StagedElement) -> bool {
        let read = |element: &StagedElement| {
            let (_, length) = self.layout().read_queue_key(0, &element.name).ok()?;
            element.name.get(..length).map(<[u8]>::to_vec)
        };
        read(one) == read(other)
    }

    /// Elements of one priority, the oldest first: at their old places, unless there was nothing of
    /// that priority meanwhile and it has begun anew in front of those.
    async fn put_back_in_queue(
        &self,
        key: &OpenKey,
        elements: &[StagedElement],
    ) -> Result<(), StoreError> {
        let Some(oldest) = elements.first() else {
            return Ok(());
        };
        let (place, _) = self.layout().read_queue_key(0, &oldest.name)?;
        let prefix = self.layout().queue_prefix(key.data());
        let of_priority = self.layout().priority_prefix(key.data(), &place.priority);
        let first = self
            .outermost(
                &KeyRange::children(&of_priority),
                false,
                Isolation::Snapshot,
            )
            .await?;
        let last = elements.last().map(|last| row_key(&prefix, last));
        let begun_anew = first.filter(|first| last.is_some_and(|last| last >= first.key));
        let random = self.environment.position_random();
        let count = i64::try_from(elements.len()).unwrap_or(i64::MAX);
        for (number, element) in (0_i64..).zip(elements) {
            let row = match &begun_anew {
                None => row_key(&prefix, element),
                Some(first) => {
                    let (first, _) = self.layout().read_queue_key(prefix.len(), &first.key)?;
                    let (place, _) = self.layout().read_queue_key(0, &element.name)?;
                    let place = QueuePlace {
                        count: first.count.saturating_sub(count - number),
                        random,
                        ..place
                    };
                    self.layout().queue_key(key.data(), &place)
                }
            };
            let value = self.store_value(key.data(), &element.value);
            self.transaction.set(&row, &value);
        }
        self.add_length(key, count);
        Ok(())
    }
}

fn row_key(prefix: &[u8], element: &StagedElement) -> Vec<u8> {
    [prefix, &element.name[..]].concat()
}
