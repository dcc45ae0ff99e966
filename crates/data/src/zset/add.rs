//! Adding members and changing scores (ZADD), and storing whole sets.

use std::collections::HashMap;

use bytes::Bytes;

use crate::error::CommandError;
use crate::rows::pages::Pages;
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_base::limits::{ELEMENT_KEY_BYTES_MAX, RANGE_PAGE_ROWS};
use quoin_layout::member::normal_score;
use quoin_layout::{LongPlace, Member, MemberEntry, Position, ValueType};

use super::{ScoredMember, SortedSetMut};

/// ZADD's conditions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AddOptions {
    /// Only add members (NX).
    pub only_new: bool,
    /// Only change existing members (XX).
    pub only_existing: bool,
    /// Change scores only upwards. New members are added (GT).
    pub only_greater: bool,
    /// Change scores only downwards. New members are added (LT).
    pub only_less: bool,
    /// Add the given scores to the present ones (INCR).
    pub increment: bool,
}

/// What ZADD did.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AddOutcome {
    /// New members.
    pub added: i64,
    /// Members whose score has changed.
    pub updated: i64,
    /// Score of the last member that the conditions let pass.
    pub score: Option<f64>,
}

enum Decision {
    Skip,
    Keep(f64),
    Write(f64),
}

impl AddOptions {
    fn decide(self, current: Option<f64>, score: f64) -> Result<Decision, CommandError> {
        let Some(current) = current else {
            return Ok(match self.only_existing {
                true => Decision::Skip,
                false => Decision::Write(score),
            });
        };
        if self.only_new {
            return Ok(Decision::Skip);
        }
        let score = match self.increment {
            true => current + score,
            false => score,
        };
        if score.is_nan() {
            return Err(CommandError::text(
                "ERR resulting score is not a number (NaN)",
            ));
        }
        let is_refused =
            (self.only_less && score >= current) || (self.only_greater && score <= current);
        Ok(if is_refused {
            Decision::Skip
        } else if score == current {
            Decision::Keep(score)
        } else {
            Decision::Write(score)
        })
    }
}

impl SortedSetMut<'_, '_> {
    /// Adds members or changes their scores, in order. Conflicts only with changes of the same
    /// members.
    ///
    /// # Errors
    /// `Text` if an increment gives NaN, or if there is no label left between two long members.
    pub async fn add(
        &self,
        members: &[ScoredMember],
        options: AddOptions,
    ) -> Result<AddOutcome, CommandError> {
        let mut outcome = AddOutcome::default();
        for chunk in members.chunks(RANGE_PAGE_ROWS) {
            let forms: Vec<Member> = chunk.iter().map(|one| Member::new(&one.member)).collect();
            let entries = self.entries(&forms).await?;
            // If a member is named twice, its first change makes the entry that was read outdated.
            let mut changed: HashMap<&Bytes, MemberEntry> = HashMap::new();
            for ((one, form), stored) in chunk.iter().zip(&forms).zip(entries) {
                let current = changed.get(&one.member).cloned().or(stored);
                let old_score = current.as_ref().map(|entry| entry.score);
                let score = match options.decide(old_score, one.score)? {
                    Decision::Skip => continue,
                    Decision::Keep(score) => {
                        outcome.score = Some(score);
                        continue;
                    }
                    Decision::Write(score) => score,
                };
                match &current {
                    Some(entry) => {
                        self.clear_score_row(form, entry).await?;
                        outcome.updated += 1;
                    }
                    None => outcome.added += 1,
                }
                let entry = self.new_entry(form, score).await?;
                self.write_rows(form, &entry);
                if chunk.len() > 1 {
                    changed.insert(&one.member, entry);
                }
                outcome.score = Some(score);
            }
        }
        if outcome.added == 0 && outcome.updated > 0 {
            self.context.mark_changed(self.key);
        }
        self.context.add_length(self.key, outcome.added);
        Ok(outcome)
    }

    /// The entry of a member that is not in the score index. A long member gets a label between
    /// its neighbours.
    async fn new_entry(&self, member: &Member, score: f64) -> Result<MemberEntry, CommandError> {
        let score = normal_score(score);
        if !member.is_long() {
            return Ok(MemberEntry { score, long: None });
        }
        let (context, data) = (self.context, self.key.data());
        let group = context
            .layout()
            .long_members(data, score, member.indexed_prefix());
        let (_, prefix_length) = self.score_rows();
        // Read serializably: two long members that are added at once must not get the same label.
        let mut pages = Pages::new(context, group, false, 0);
        let (mut before, mut after) = (None, None);
        'search: while let Some(rows) = pages.next().await? {
            for row in rows {
                let entry = context.layout().read_score_key(prefix_length, &row.key)?;
                if context.load_value(data, &row.value).await? > member.bytes() {
                    after = entry.label;
                    break 'search;
                }
                before = entry.label;
            }
        }
        let label = Position::between(before.as_ref(), after.as_ref());
        self.long_entry(member, score, label)
    }

    fn long_entry(
        &self,
        member: &Member,
        score: f64,
        label: Position,
    ) -> Result<MemberEntry, CommandError> {
        let entry = MemberEntry {
            score,
            long: Some(LongPlace {
                prefix: Bytes::copy_from_slice(member.indexed_prefix()),
                label,
            }),
        };
        if self.score_key(member, &entry).len() > ELEMENT_KEY_BYTES_MAX {
            return Err(CommandError::text(
                "ERR too many insertions between the same two long members",
            ));
        }
        Ok(entry)
    }

    fn write_rows(&self, member: &Member, entry: &MemberEntry) {
        let (context, data) = (self.context, self.key.data());
        let score_key = self.score_key(member, entry);
        let value = match member.is_long() {
            true => context.store_value(data, member.bytes()),
            false => Vec::new(),
        };
        context.transaction.set(&score_key, &value);
        context.note_rank_change(self.key, &score_key, 1);
        let member_key = context.layout().member_key(data, member);
        context.transaction.set(&member_key, &entry.encode());
    }
}

/// Replaces whatever is at `name` with a result. Without members, only removes what is there. The
/// members are distinct and in Redis's order. Returns the number of members.
///
/// # Errors
/// `Text` if there is no label left for a long member.
pub async fn store(
    context: &WriteContext<'_>,
    name: &Bytes,
    members: &[ScoredMember],
) -> Result<i64, CommandError> {
    if members.is_empty() {
        if let Some(old) = context.find_any(name).await? {
            context.remove(&old);
            context.notify(EventClasses::GENERIC, "del", name);
        }
        return Ok(0);
    }
    let key = context.create(name, ValueType::SortedSet, None).await?;
    let set = SortedSetMut::open(context, &key);
    let mut last_long: Option<MemberEntry> = None;
    for one in members {
        let member = Member::new(&one.member);
        let score = normal_score(one.score);
        let entry = if member.is_long() {
            let before = last_long
                .take()
                .filter(|last| last.score == score)
                .and_then(|last| last.long)
                .filter(|last| last.prefix == member.indexed_prefix())
                .map(|last| last.label);
            let label = Position::between(before.as_ref(), None);
            let entry = set.long_entry(&member, score, label)?;
            last_long = Some(entry.clone());
            entry
        } else {
            MemberEntry { score, long: None }
        };
        set.write_rows(&member, &entry);
    }
    let count = i64::try_from(members.len()).unwrap_or(i64::MAX);
    context.add_length(&key, count);
    Ok(count)
}
