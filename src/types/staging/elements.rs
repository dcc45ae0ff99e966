//! Elements off a queue of any type, and back to where they were.

use bytes::Bytes;

use crate::error::CommandError;
use crate::layout::{Section, StagedElement, ValueType};
use crate::store::StoreError;
use crate::types::context::WriteContext;
use crate::types::keyspace::OpenKey;
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
                Ok(members.into_iter().map(of_member).collect())
            }
            ValueType::PriorityQueue => self.queue_pop_placed(key, count, extreme).await,
            // Tasks are not popped from an end.
            ValueType::TaskQueue => Ok(Vec::new()),
        }
    }

    /// Puts elements back where they were, and answers how many there are more now. A member
    /// that was added to a sorted set anew meanwhile stays as it is.
    pub(super) async fn put_back(
        &self,
        key: &OpenKey,
        elements: Vec<StagedElement>,
    ) -> Result<i64, CommandError> {
        let section = match key.meta.value_type {
            ValueType::List => Section::Elements,
            ValueType::PriorityQueue => Section::Queue,
            ValueType::SortedSet => {
                let members = elements.into_iter().map(to_member);
                let members: Vec<ScoredMember> = members.collect::<Result<_, _>>()?;
                let only_new = AddOptions {
                    only_new: true,
                    ..AddOptions::default()
                };
                return Ok(self.zset_add(key, &members, only_new).await?.added);
            }
            ValueType::TaskQueue => return Ok(0),
        };
        let prefix = self.layout().section_prefix(key.data(), section);
        for element in &elements {
            let value = self.store_value(key.data(), &element.value);
            self.transaction
                .set(&[&prefix, &element.name[..]].concat(), &value);
        }
        let count = i64::try_from(elements.len()).unwrap_or(i64::MAX);
        self.add_length(key, count);
        Ok(count)
    }
}

fn of_member(member: ScoredMember) -> StagedElement {
    StagedElement {
        name: member.member,
        value: Bytes::copy_from_slice(&member.score.to_be_bytes()),
    }
}

/// A member of a sorted set as it was when it was popped.
///
/// # Errors
/// `Corrupt` where the value is no score.
pub(in crate::types) fn to_member(element: StagedElement) -> Result<ScoredMember, StoreError> {
    let Ok(score) = <[u8; 8]>::try_from(element.value.as_ref()) else {
        return crate::layout::corrupt("score of a claim");
    };
    Ok(ScoredMember {
        member: element.name,
        score: f64::from_be_bytes(score),
    })
}
