//! Reading members: their scores, the rows of both indexes, ZSCAN and ZRANDMEMBER.

use bytes::Bytes;

use crate::keyspace::encoding::{LISTPACK_MEMBERS_MAX, is_short};
use crate::rows::pages::Pages;
use quoin_base::limits::RANGE_PAGE_ROWS;
use quoin_layout::{DecodeError, HashedKeys, KeyRange, Member, MemberEntry, Section};
use quoin_store::{Isolation, KeyValue, StoreError};

use super::{ScoredMember, SortedSet};

impl<'c, 't> SortedSet<'c, 't> {
    /// The number of members.
    pub(super) async fn length(&self) -> Result<i64, StoreError> {
        self.context.length(self.key, self.context.isolation).await
    }

    /// The member's score.
    pub async fn score(&self, member: &Bytes) -> Result<Option<f64>, StoreError> {
        let entry = self.entry(&Member::new(member)).await?;
        Ok(entry.map(|entry| entry.score))
    }

    /// The scores of several members, read at once.
    pub async fn scores(&self, members: &[Bytes]) -> Result<Vec<Option<f64>>, StoreError> {
        let members: Vec<Member> = members.iter().map(Member::new).collect();
        let entries = self.entries(&members).await?.into_iter();
        Ok(entries.map(|entry| Some(entry?.score)).collect())
    }

    /// The member's entry in the member index.
    pub(super) async fn entry(&self, member: &Member) -> Result<Option<MemberEntry>, StoreError> {
        let context = self.context;
        let member_key = context.layout().member_key(self.key.data(), member);
        let row = context.transaction.get(&member_key, context.isolation);
        match row.await? {
            Some(value) => Ok(Some(MemberEntry::decode(&value)?)),
            None => Ok(None),
        }
    }

    /// The entries of several members in the member index; their round trips overlap.
    pub(super) async fn entries(
        &self,
        members: &[Member],
    ) -> Result<Vec<Option<MemberEntry>>, StoreError> {
        let read = async |member| self.entry(member).await;
        self.context.each(members, RANGE_PAGE_ROWS, read).await
    }

    /// The rows of the score index, and the length of their common prefix.
    pub(super) fn score_rows(&self) -> (KeyRange, usize) {
        let prefix = self.context.layout().scores_prefix(self.key.data());
        (KeyRange::children(&prefix), prefix.len())
    }

    /// All rows of the score index, a page at a time.
    pub(super) fn score_pages(&self, reverse: bool) -> Pages<'c, 't> {
        Pages::new(self.context, self.score_rows().0, reverse, 0)
    }

    /// The key of a member's row in the score index.
    pub(super) fn score_key(&self, member: &Member, entry: &MemberEntry) -> Vec<u8> {
        let label = entry.long.as_ref().map(|place| &place.label);
        let (data, prefix) = (self.key.data(), member.indexed_prefix());
        let layout = self.context.layout();
        layout.score_key(data, entry.score, prefix, label)
    }

    /// Reads a row of the score index.
    pub(super) async fn scored_member(
        &self,
        prefix_length: usize,
        row: &KeyValue,
    ) -> Result<ScoredMember, StoreError> {
        let layout = self.context.layout();
        let entry = layout.read_score_key(prefix_length, &row.key)?;
        let member = match entry.label {
            None => entry.prefix,
            Some(_) => self.context.load_value(self.key.data(), &row.value).await?,
        };
        Ok(ScoredMember {
            member,
            score: entry.score,
        })
    }

    /// Reads rows of the score index.
    pub(super) async fn scored_members(
        &self,
        rows: &[KeyValue],
    ) -> Result<Vec<ScoredMember>, StoreError> {
        let (_, prefix_length) = self.score_rows();
        let mut members = Vec::with_capacity(rows.len());
        for row in rows {
            members.push(self.scored_member(prefix_length, row).await?);
        }
        Ok(members)
    }

    /// Reads a row of the member index.
    async fn indexed_member(
        &self,
        keys: &HashedKeys,
        row: &KeyValue,
    ) -> Result<ScoredMember, StoreError> {
        let (context, data) = (self.context, self.key.data());
        let (_, inline) = keys.read(&row.key)?;
        let entry = MemberEntry::decode(&row.value)?;
        let member = match (inline, entry.long) {
            (Some(member), None) => member,
            (None, Some(place)) => {
                let layout = context.layout();
                let label = Some(&place.label);
                let score_key = layout.score_key(data, entry.score, &place.prefix, label);
                // A change of the member changes its row in the member index, which conflicts.
                let value = context.transaction.get(&score_key, Isolation::Snapshot);
                let missing = DecodeError("long member is not in the score index");
                context
                    .load_value(data, &value.await?.ok_or(missing)?)
                    .await?
            }
            _ => return Err(DecodeError("member index disagrees on a long member").into()),
        };
        let score = entry.score;
        Ok(ScoredMember { member, score })
    }

    /// Reads rows of the member index.
    async fn indexed_members(&self, rows: &[KeyValue]) -> Result<Vec<ScoredMember>, StoreError> {
        let mut members = Vec::with_capacity(rows.len());
        let keys = self.context.layout().member_keys(self.key.data());
        for row in rows {
            members.push(self.indexed_member(&keys, row).await?);
        }
        Ok(members)
    }

    /// All members in Redis's order, if Redis has a compact encoding for the set.
    pub(super) async fn compact(&self) -> Result<Option<Vec<ScoredMember>>, StoreError> {
        let length = self.length().await?;
        if usize::try_from(length).is_ok_and(|length| length > LISTPACK_MEMBERS_MAX) {
            return Ok(None);
        }
        let rows = self.score_pages(false).slice(0, usize::MAX).await?;
        let members = self.scored_members(&rows).await?;
        let is_compact = members.iter().all(|one| is_short(&one.member));
        Ok(is_compact.then_some(members))
    }

    /// At least `count` members from a cursor on, or the last ones, and the next cursor (0 at the
    /// end). The cursor is a hash of the member index.
    pub async fn scan(
        &self,
        cursor: u64,
        count: usize,
    ) -> Result<(u64, Vec<ScoredMember>), StoreError> {
        let (next, rows) = self
            .context
            .hashed_scan(self.key.data(), Section::Members, cursor, count)
            .await?;
        Ok((next, self.indexed_members(&rows).await?))
    }

    /// `count` random members, which may repeat.
    pub async fn random(&self, count: usize) -> Result<Vec<ScoredMember>, StoreError> {
        let length = self.length().await?;
        let rows = self
            .context
            .hashed_random(self.key.data(), Section::Members, length, count)
            .await?;
        self.indexed_members(&rows).await
    }

    /// Up to `count` distinct random members.
    pub async fn random_distinct(&self, count: usize) -> Result<Vec<ScoredMember>, StoreError> {
        let length = self.length().await?;
        if length <= 0 || count == 0 {
            return Ok(Vec::new());
        }
        if i64::try_from(count).is_ok_and(|count| count < length) {
            let rows = self
                .context
                .hashed_random_distinct(self.key.data(), Section::Members, length, count)
                .await?;
            return self.indexed_members(&rows).await;
        }
        // All of them, in Redis's order.
        let rows = self.score_pages(true).slice(0, usize::MAX).await?;
        self.scored_members(&rows).await
    }
}
