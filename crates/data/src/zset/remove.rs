//! Removing members: by name, by range, and from an end (ZPOPMIN, ZPOPMAX).

use std::collections::HashSet;

use bytes::Bytes;

use crate::command::arguments::clamp_range;
use crate::error::CommandError;
use crate::warm::WARMED_COMMANDS;
use quoin_base::limits::RANGE_PAGE_ROWS;
use quoin_layout::{
    DecodeError, KeyRange, Member, MemberEntry, PoppedElement, Section, StoredValue,
};
use quoin_store::{Isolation, KeyValue, SoonRead, StoreError};

use super::range::{Selection, SortedRange};
use super::{AddOptions, Extreme, ScoredMember, SortedSetMut};

impl SortedSetMut<'_, '_> {
    /// Removes members and returns how many there were. The caller ends with
    /// [`remove_if_empty`](crate::unit::context::WriteContext::remove_if_empty).
    pub async fn remove(&self, members: &[Bytes]) -> Result<i64, StoreError> {
        let mut removed = 0;
        for chunk in members.chunks(RANGE_PAGE_ROWS) {
            let forms: Vec<Member> = chunk.iter().map(Member::new).collect();
            let entries = self.entries(&forms).await?;
            let mut gone: HashSet<&Bytes> = HashSet::new();
            for (form, entry) in forms.iter().zip(entries) {
                let Some(entry) = entry else { continue };
                if chunk.len() > 1 && !gone.insert(form.bytes()) {
                    continue;
                }
                self.clear_score_row(form, &entry).await?;
                self.context.transaction.clear(&self.member_row(form));
                removed += 1;
            }
        }
        self.context.add_length(self.key, -removed);
        Ok(removed)
    }

    /// Removes the selected members and returns how many there were. The caller ends with
    /// [`remove_if_empty`](crate::unit::context::WriteContext::remove_if_empty).
    pub async fn remove_range(&self, selection: &Selection) -> Result<i64, StoreError> {
        if let Selection::Ranks { start, stop } = selection {
            // This read conflicts with every change of the length.
            let length = self.context.length(self.key, Isolation::Serializable);
            let length = length.await?;
            let is_all = clamp_range(*start, *stop, length)
                .is_some_and(|(offset, count)| offset == 0 && i64::try_from(count) == Ok(length));
            if is_all {
                self.remove_all(length);
                return Ok(length);
            }
        }
        let range = SortedRange::all_of(selection.clone());
        let rows = self.rows(&range).await?;
        let (_, prefix_length) = self.score_rows();
        self.take_rows(prefix_length, &rows, drop).await?;
        let removed = to_i64(rows.len());
        self.context.add_length(self.key, -removed);
        Ok(removed)
    }

    /// Removes all members. There are `length` of them.
    fn remove_all(&self, length: i64) {
        let context = self.context;
        context.drop_blocks(self.key);
        for section in [Section::Scores, Section::Members, Section::Chunks] {
            let prefix = context.layout().section_prefix(self.key.data(), section);
            let range = KeyRange::children(&prefix);
            context.transaction.clear_range(&range.begin, &range.end);
        }
        context.add_length(self.key, -length);
    }

    /// Pops up to `count` members from one end, the outermost first. The caller ends with
    /// [`remove_if_empty`](crate::unit::context::WriteContext::remove_if_empty).
    pub async fn pop(&self, count: usize, end: Extreme) -> Result<Vec<ScoredMember>, StoreError> {
        let from_end = end == Extreme::Max;
        let (range, prefix_length) = self.score_rows();
        let rows = self.context.rows_to_pop(&range, from_end, count).await?;
        let mut members = Vec::with_capacity(rows.len());
        let keep = |member| members.push(member);
        self.take_rows(prefix_length, &rows, keep).await?;
        self.context.add_length(self.key, -to_i64(members.len()));
        Ok(members)
    }

    /// Puts members of a grant back, unless they were added again meanwhile.
    pub(super) async fn put_back(&self, elements: Vec<PoppedElement>) -> Result<(), CommandError> {
        let members = elements.into_iter().map(to_member);
        let members: Vec<ScoredMember> = members.collect::<Result<_, _>>()?;
        let only_new = AddOptions {
            only_new: true,
            ..AddOptions::default()
        };
        self.add(&members, only_new).await?;
        Ok(())
    }

    /// Clears members by their rows of the score index and gives each to `taken`. Does not count them.
    async fn take_rows(
        &self,
        prefix_length: usize,
        rows: &[KeyValue],
        mut taken: impl FnMut(ScoredMember),
    ) -> Result<(), StoreError> {
        let context = self.context;
        for rows in rows.chunks(WARMED_COMMANDS) {
            let mut named = Vec::with_capacity(rows.len());
            for row in rows {
                let member = self.scored_member(prefix_length, row).await?;
                if !row.value.is_empty() {
                    context.discard_value(self.key.data(), &row.value)?;
                }
                context.transaction.clear(&row.key);
                context.note_rank_change(self.key, &row.key, -1);
                named.push(self.member_row(&Member::new(&member.member)));
                taken(member);
            }
            // Members with neighbouring scores are scattered in the index by name.
            if named.len() > 1 {
                let soon: Vec<SoonRead> = named.iter().cloned().map(SoonRead::Row).collect();
                context.transaction.warm(&soon);
            }
            for row in &named {
                context.transaction.clear(row);
            }
        }
        Ok(())
    }

    /// Clears a member's row in the score index.
    pub(super) async fn clear_score_row(
        &self,
        member: &Member,
        entry: &MemberEntry,
    ) -> Result<(), StoreError> {
        let context = self.context;
        let score_key = self.score_key(member, entry);
        if StoredValue::needs_split(member.bytes().len()) {
            let value = context.transaction.get(&score_key, context.isolation);
            if let Some(value) = value.await? {
                context.discard_value(self.key.data(), &value)?;
            }
        }
        context.transaction.clear(&score_key);
        context.note_rank_change(self.key, &score_key, -1);
        Ok(())
    }

    /// The key of a member's row in the index by name.
    fn member_row(&self, member: &Member) -> Vec<u8> {
        let layout = self.context.layout();
        layout.member_key(self.key.data(), member)
    }
}

/// The member that an element of a grant was made of.
///
/// # Errors
/// If its value is not a score.
fn to_member(element: PoppedElement) -> Result<ScoredMember, DecodeError> {
    let score = <[u8; 8]>::try_from(element.value.as_ref());
    Ok(ScoredMember {
        member: element.name,
        score: f64::from_be_bytes(score.map_err(|_| DecodeError("score of a grant"))?),
    })
}

fn to_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
