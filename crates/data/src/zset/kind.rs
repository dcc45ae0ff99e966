//! The descriptor of sorted sets.

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::error::CommandError;
use crate::keyspace::dumping::check_size;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::{
    Entries, EntryCheck, EntryFault, QueueKind, Restorable, SectionKind, Serialization, Slice,
    ValueKind, element_or_empty,
};
use crate::rows::pages::Pages;
use crate::rows::ranks;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_layout::{MemberEntry, PoppedElement, Section};
use quoin_rdb::{
    DumpError, Payload, SMALL_SORTED_SET_MEMBERS_MAX, SortedSetMembers, SortedSetWriter,
    small_sorted_set,
};
use quoin_store::{KeyValue, StoreError};

use super::{AddOptions, Extreme, ScoredMember, Selection, SortedRange, score_rows, to_member};

/// Members after which RESTORE first looks whether one comes twice, and then each time that they
/// have doubled.
const MEMBERS_FIRST_LOOK: usize = 1_024;

/// The descriptor of sorted sets.
pub static KIND: ValueKind = ValueKind {
    name: "zset",
    encoding: |context, key| Box::pin(context.zset_encoding(key)),
    exists_when_empty: false,
    body: None,
    is_waited_for: true,
    sections: &[
        SectionKind::elements(Section::Scores, element_or_empty),
        SectionKind::twins(Section::Members).checked(EntryCheck::new(&LOST_SCORE, |entries| {
            Box::pin(have_scores(entries))
        })),
        SectionKind::CHUNKS,
        SectionKind::ranks(Section::RankCounts).checked(ranks::COUNTS),
        SectionKind::ranks(Section::RankMarks).checked(ranks::MARKS),
    ],
    counters: &[],
    queue: Some(QueueKind {
        sections: [Some(Section::Scores); 2],
        rank_length: None,
        take: |context, key, from_end, count| {
            let end = if from_end { Extreme::Max } else { Extreme::Min };
            Box::pin(context.zset_pop_placed(key, count, end))
        },
        put_back: |context, key, elements, _| Box::pin(context.zset_put_back(key, elements)),
    }),
    on_put: None,
    slice: Some(|context, key, slice| Box::pin(context.zset_sorted_slice(key, slice))),
    serialization: Some(Serialization {
        reads: |payload| SortedSetMembers::reads(payload.rdb_type()),
        dump: |context, key| Box::pin(context.zset_dump(key)),
        read: restorable,
    }),
};

static LOST_SCORE: EntryFault = EntryFault {
    text: [
        "member that the order of scores does not have",
        "members that the order of scores does not have",
    ],
    advice: "ZREM and ZADD of these members put them right",
    is_removable: false,
    entry_name: None,
};

/// Whether members have a row in the order of scores.
async fn have_scores(entries: Entries<'_>) -> Result<Vec<bool>, StoreError> {
    try_join_all(entries.rows.iter().map(|row| has_score(entries, row))).await
}

async fn has_score(entries: Entries<'_>, row: &KeyValue) -> Result<bool, StoreError> {
    let Entries { layout, data, .. } = entries;
    let (Ok((_, inline)), Ok(entry)) = (
        layout.read_member_key(data, &row.key),
        MemberEntry::decode(&row.value),
    ) else {
        return Ok(true);
    };
    let score_key = match (&inline, &entry.long) {
        (Some(member), _) => layout.score_key(data, entry.score, member, None),
        (None, Some(place)) => {
            layout.score_key(data, entry.score, &place.prefix, Some(&place.label))
        }
        (None, None) => return Ok(false),
    };
    let found = entries.transaction.get(&score_key, entries.isolation);
    Ok(found.await?.is_some())
}

impl ReadContext<'_> {
    async fn zset_sorted_slice(
        &self,
        key: &OpenKey,
        slice: Slice,
    ) -> Result<Vec<Bytes>, StoreError> {
        let range = SortedRange {
            reverse: slice.descending,
            ..SortedRange::all_of(Selection::Ranks {
                start: slice.begin,
                stop: slice.end - 1,
            })
        };
        let members = self.zset_range(key, &range).await?;
        Ok(members.into_iter().map(|one| one.member).collect())
    }

    async fn zset_dump(&self, key: &OpenKey) -> Result<Bytes, CommandError> {
        let (range, _) = score_rows(self, key.data());
        let length = self.length(key, self.isolation).await?;
        let length = u64::try_from(length).unwrap_or(0);
        if length <= SMALL_SORTED_SET_MEMBERS_MAX as u64 {
            let rows = Pages::new(self, range.clone(), false, 0)
                .slice(0, SMALL_SORTED_SET_MEMBERS_MAX)
                .await?;
            let members = self.zset_scored_members(key, &rows).await?;
            let members: Vec<_> = members
                .into_iter()
                .map(|one| (one.member, one.score))
                .collect();
            if let Some(payload) = small_sorted_set(&members) {
                return Ok(payload);
            }
        }
        let mut writer = SortedSetWriter::new(length);
        let mut pages = Pages::new(self, range, true, 0);
        let mut count = 0;
        while let Some(rows) = pages.next().await? {
            // One by one: long members of a whole page may be much.
            for row in &rows {
                for one in self
                    .zset_scored_members(key, std::slice::from_ref(row))
                    .await?
                {
                    writer.push(&one.member, one.score);
                }
                check_size(writer.size_bytes())?;
                count += 1;
            }
        }
        if count == length {
            Ok(writer.finish())
        } else {
            Err(StoreError::Corrupt("a set has another length than is counted").into())
        }
    }
}

fn restorable(context: &ReadContext<'_>, payload: Payload) -> Result<Restorable, CommandError> {
    let mut budget = context.size_budget();
    let mut read = Vec::new();
    let mut next_look = MEMBERS_FIRST_LOOK;
    for member in SortedSetMembers::new(payload)? {
        let (member, score) = member?;
        budget.take_member(member.len())?;
        read.push(ScoredMember { member, score });
        // A few bytes can stand for millions of equal members.
        if read.len() == next_look {
            check_distinct(&mut read)?;
            next_look = next_look.saturating_mul(2);
        }
    }
    check_distinct(&mut read)?;
    if read.is_empty() {
        return Err(DumpError::Format.into());
    }
    read.sort_unstable_by(ScoredMember::order);
    Ok(Box::new(|context, name, expire_at_ms| {
        Box::pin(context.zset_restore(name, read, expire_at_ms))
    }))
}

/// Checks that no member comes twice; puts them into the order of their bytes.
fn check_distinct(members: &mut [ScoredMember]) -> Result<(), DumpError> {
    members.sort_unstable_by(|one, other| one.member.cmp(&other.member));
    let is_distinct = members
        .windows(2)
        .all(|pair| !matches!(pair, [one, other] if one.member == other.member));
    if is_distinct {
        Ok(())
    } else {
        Err(DumpError::Format)
    }
}

impl WriteContext<'_> {
    async fn zset_restore(
        &self,
        name: &Bytes,
        members: Vec<ScoredMember>,
        expire_at_ms: Option<i64>,
    ) -> Result<(), CommandError> {
        self.zset_store(name, &members).await?;
        if expire_at_ms.is_some()
            && let Some(mut key) = self.find_any(name).await?
        {
            self.set_expiry(&mut key, expire_at_ms);
        }
        Ok(())
    }

    async fn zset_put_back(
        &self,
        key: &OpenKey,
        elements: Vec<PoppedElement>,
    ) -> Result<(), CommandError> {
        let members = elements.into_iter().map(to_member);
        let members: Vec<ScoredMember> = members.collect::<Result<_, _>>()?;
        let only_new = AddOptions {
            only_new: true,
            ..AddOptions::default()
        };
        self.zset_add(key, &members, only_new).await?;
        Ok(())
    }
}
