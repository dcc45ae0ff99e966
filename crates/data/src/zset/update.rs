//! Adding members, changing scores, removing members, storing whole results.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_base::limits::{ELEMENT_KEY_BYTES_MAX, RANGE_PAGE_ROWS};
use quoin_layout::member::normal_score;
use quoin_layout::{LongPlace, Member, MemberEntry, Position, StoredValue, ValueType};
use quoin_store::{KeyValue, StoreError};

use super::{ScoredMember, score_rows};

/// ZADD's conditions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AddOptions {
    /// Only add members (NX).
    pub only_new: bool,
    /// Only change members that are there (XX).
    pub only_existing: bool,
    /// Change scores only upwards; new members are added all the same (GT).
    pub only_greater: bool,
    /// Change scores only downwards; new members are added all the same (LT).
    pub only_less: bool,
    /// The scores given are added to those that are there (INCR).
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
            return Ok(if self.only_existing {
                Decision::Skip
            } else {
                Decision::Write(score)
            });
        };
        if self.only_new {
            return Ok(Decision::Skip);
        }
        let score = if self.increment {
            current + score
        } else {
            score
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

impl WriteContext<'_> {
    /// Adds members or changes their scores, in order. Conflicts only with changes of the same
    /// members.
    ///
    /// # Errors
    /// `Text` where an increment gives NaN, or where long members leave no room for another
    /// between them.
    pub async fn zset_add(
        &self,
        key: &OpenKey,
        members: &[ScoredMember],
        options: AddOptions,
    ) -> Result<AddOutcome, CommandError> {
        let mut outcome = AddOutcome::default();
        for chunk in members.chunks(RANGE_PAGE_ROWS) {
            let forms: Vec<Member> = chunk.iter().map(|one| Member::new(&one.member)).collect();
            let entries = self.zset_entries(key, &forms).await?;
            // A member may be named twice; what was read before its first change is old.
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
                        self.zset_clear_score_row(key, form, entry).await?;
                        outcome.updated += 1;
                    }
                    None => outcome.added += 1,
                }
                let entry = self.zset_place(key, form, score).await?;
                self.zset_write_rows(key, form, &entry);
                if chunk.len() > 1 {
                    changed.insert(&one.member, entry);
                }
                outcome.score = Some(score);
            }
        }
        if outcome.added == 0 && outcome.updated > 0 {
            self.mark_changed(key);
        }
        self.add_length(key, outcome.added);
        Ok(outcome)
    }

    /// Where a member that is not in the score index is to stand there.
    async fn zset_place(
        &self,
        key: &OpenKey,
        member: &Member,
        score: f64,
    ) -> Result<MemberEntry, CommandError> {
        let score = normal_score(score);
        if !member.is_long() {
            return Ok(MemberEntry { score, long: None });
        }
        let prefix = member.indexed_prefix();
        let group = self.layout().long_members(key.data(), score, prefix);
        let (_, prefix_length) = score_rows(self, key.data());
        // Read serializably: two long members that are added at once must not take one label.
        let mut pages = Pages::new(self, group, false, 0);
        let (mut before, mut after) = (None, None);
        'search: while let Some(rows) = pages.next().await? {
            for row in rows {
                let label = self.layout().read_score_key(prefix_length, &row.key)?.label;
                if self.load_value(key.data(), &row.value).await? > member.bytes() {
                    after = label;
                    break 'search;
                }
                before = label;
            }
        }
        let label = Position::between(before.as_ref(), after.as_ref());
        self.zset_long_entry(key, member, score, label)
    }

    fn zset_long_entry(
        &self,
        key: &OpenKey,
        member: &Member,
        score: f64,
        label: Position,
    ) -> Result<MemberEntry, CommandError> {
        let prefix = member.indexed_prefix();
        let score_key = self
            .layout()
            .score_key(key.data(), score, prefix, Some(&label));
        if score_key.len() > ELEMENT_KEY_BYTES_MAX {
            return Err(CommandError::text(
                "ERR too many insertions between the same two long members",
            ));
        }
        Ok(MemberEntry {
            score,
            long: Some(LongPlace {
                prefix: Bytes::copy_from_slice(prefix),
                label,
            }),
        })
    }

    fn zset_write_rows(&self, key: &OpenKey, member: &Member, entry: &MemberEntry) {
        let label = entry.long.as_ref().map(|place| &place.label);
        let score_key =
            self.layout()
                .score_key(key.data(), entry.score, member.indexed_prefix(), label);
        let value = if member.is_long() {
            self.store_value(key.data(), member.bytes())
        } else {
            Vec::new()
        };
        self.transaction.set(&score_key, &value);
        self.note_rank_change(key, &score_key, 1);
        let member_key = self.layout().member_key(key.data(), member);
        self.transaction.set(&member_key, &entry.encode());
    }

    async fn zset_clear_score_row(
        &self,
        key: &OpenKey,
        member: &Member,
        entry: &MemberEntry,
    ) -> Result<(), StoreError> {
        let label = entry.long.as_ref().map(|place| &place.label);
        let score_key =
            self.layout()
                .score_key(key.data(), entry.score, member.indexed_prefix(), label);
        if StoredValue::needs_split(member.bytes().len())
            && let Some(value) = self.transaction.get(&score_key, self.isolation).await?
        {
            self.discard_value(key.data(), &value)?;
        }
        self.transaction.clear(&score_key);
        self.note_rank_change(key, &score_key, -1);
        Ok(())
    }

    /// Removes members and answers how many there were. The caller ends with
    /// [`WriteContext::remove_if_empty`].
    pub async fn zset_remove(&self, key: &OpenKey, members: &[Bytes]) -> Result<i64, StoreError> {
        let mut removed = 0;
        for chunk in members.chunks(RANGE_PAGE_ROWS) {
            let forms: Vec<Member> = chunk.iter().map(Member::new).collect();
            let entries = self.zset_entries(key, &forms).await?;
            let mut gone: HashSet<&Bytes> = HashSet::new();
            for (form, entry) in forms.iter().zip(entries) {
                let Some(entry) = entry else { continue };
                if chunk.len() > 1 && !gone.insert(form.bytes()) {
                    continue;
                }
                self.zset_clear_score_row(key, form, &entry).await?;
                let member_key = self.layout().member_key(key.data(), form);
                self.transaction.clear(&member_key);
                removed += 1;
            }
        }
        self.add_length(key, -removed);
        Ok(removed)
    }

    /// Clears a member by its row of the score index, without counting it, and answers it.
    pub(super) async fn zset_take_row(
        &self,
        key: &OpenKey,
        prefix_length: usize,
        row: &KeyValue,
    ) -> Result<ScoredMember, StoreError> {
        let taken = self
            .zset_scored_member(key.data(), prefix_length, row)
            .await?;
        if !row.value.is_empty() {
            self.discard_value(key.data(), &row.value)?;
        }
        self.transaction.clear(&row.key);
        self.note_rank_change(key, &row.key, -1);
        let member = Member::new(&taken.member);
        let member_key = self.layout().member_key(key.data(), &member);
        self.transaction.clear(&member_key);
        Ok(taken)
    }

    /// Puts a result in place of whatever is at `name`, or nothing where it is empty; members
    /// must be distinct and in Redis's order. Answers how many there are.
    ///
    /// # Errors
    /// `Text` where keys leave no room for so many long members.
    pub async fn zset_store(
        &self,
        name: &Bytes,
        members: &[ScoredMember],
    ) -> Result<i64, CommandError> {
        if members.is_empty() {
            if let Some(old) = self.find_any(name).await? {
                self.remove(&old);
                self.notify(EventClasses::GENERIC, "del", name);
            }
            return Ok(0);
        }
        let key = self.create(name, ValueType::SortedSet, None).await?;
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
                let entry = self.zset_long_entry(&key, &member, score, label)?;
                last_long = Some(entry.clone());
                entry
            } else {
                MemberEntry { score, long: None }
            };
            self.zset_write_rows(&key, &member, &entry);
        }
        let count = i64::try_from(members.len()).unwrap_or(i64::MAX);
        self.add_length(&key, count);
        Ok(count)
    }
}
