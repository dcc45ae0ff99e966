//! The descriptor of sorted sets, OBJECT ENCODING, SORT, DUMP and RESTORE, and what doctor checks.

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::error::CommandError;
use crate::keyspace::dumping::check_size;
use crate::keyspace::figures::{QueueSpan, StateFigures, place};
use crate::keyspace::import::{Import, Reading};
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::{
    ElementFlow, Entries, EntryCheck, EntryFault, QueueKind, Restorable, SectionKind,
    Serialization, Slice, ValueKind, element_or_empty,
};
use crate::rows::ranks;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::number::parse_double;
use quoin_layout::{KeyRange, MemberEntry, Section};
use quoin_rdb::{
    DumpError, Payload, SMALL_SORTED_SET_MEMBERS_MAX, SortedSetMembers, SortedSetWriter,
    small_sorted_set,
};
use quoin_store::{Isolation, KeyValue, StoreError};

use super::{ScoredMember, Selection, SortedRange, SortedSet, SortedSetMut, store};

/// RESTORE checks for duplicates when it has read this many members, and then each time that the
/// number has doubled.
const MEMBERS_FIRST_CHECK: usize = 1_024;

/// The descriptor of sorted sets.
pub static KIND: ValueKind = ValueKind {
    name: "zset",
    encoding: |context, key| {
        Box::pin(async move { SortedSet::open(context, key).encoding().await })
    },
    exists_when_empty: false,
    inline: None,
    is_waited_for: true,
    flow: ElementFlow::ByLength,
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
        put_back: |context, key, elements, _| {
            Box::pin(async move { SortedSetMut::open(context, key).put_back(elements).await })
        },
    }),
    on_put: None,
    slice: Some(|context, key, slice| {
        Box::pin(async move { SortedSet::open(context, key).slice(slice).await })
    }),
    named_section: Some(Section::Members),
    figures: Some(|context, key| Box::pin(figures(context, key))),
    deadlines: &[],
    serialization: Some(Serialization {
        reads: |payload| SortedSetMembers::reads(payload.rdb_type()),
        dump: |context, key| {
            Box::pin(async move { SortedSet::open(context, key).dump().await.map(Some) })
        },
        read,
    }),
    import: Some(Import {
        counting: b"ZCARD",
        reading: Reading::Ranks(b"ZRANGE", &[b"WITHSCORES"]),
        reading_whole: None,
        element_words: 2,
        elements_in: |words| words.len() / 2,
        elements_are_bytes: false,
        adding: b"ZADD",
        adds_reversed: true,
        is_own: false,
        may_be_empty: false,
        payload,
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
        layout.member_keys(data).read(&row.key),
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

impl SortedSet<'_, '_> {
    async fn encoding(&self) -> Result<&'static str, StoreError> {
        match self.compact().await? {
            Some(_) => Ok("listpack"),
            None => Ok("skiplist"),
        }
    }

    /// Some members in order, for SORT.
    async fn slice(&self, slice: Slice) -> Result<Vec<Bytes>, StoreError> {
        let range = SortedRange {
            reverse: slice.descending,
            ..SortedRange::all_of(Selection::Ranks {
                start: slice.begin,
                stop: slice.end - 1,
            })
        };
        let members = self.range(&range).await?;
        Ok(members.into_iter().map(|one| one.member).collect())
    }

    async fn dump(&self) -> Result<Bytes, CommandError> {
        let (_, prefix_length) = self.score_rows();
        let length = self.length().await?;
        let length = u64::try_from(length).unwrap_or(0);
        if length <= SMALL_SORTED_SET_MEMBERS_MAX as u64 {
            let rows = self
                .score_pages(false)
                .slice(0, SMALL_SORTED_SET_MEMBERS_MAX)
                .await?;
            let members = self.scored_members(&rows).await?.into_iter();
            let members: Vec<_> = members.map(|one| (one.member, one.score)).collect();
            if let Some(payload) = small_sorted_set(&members) {
                return Ok(payload);
            }
        }
        let mut writer = SortedSetWriter::new(length);
        let mut pages = self.score_pages(true);
        let mut count = 0;
        while let Some(rows) = pages.next().await? {
            // One at a time: a page of long members may be large.
            for row in &rows {
                let one = self.scored_member(prefix_length, row).await?;
                writer.push(&one.member, one.score);
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

fn read(context: &ReadContext<'_>, payload: Payload) -> Result<Restorable, CommandError> {
    let mut budget = context.size_budget();
    let mut read = Vec::new();
    let mut next_check = MEMBERS_FIRST_CHECK;
    for member in SortedSetMembers::new(payload)? {
        let (member, score) = member?;
        budget.take_member(member.len())?;
        read.push(ScoredMember { member, score });
        // A payload of a few bytes can contain the same member millions of times.
        if read.len() == next_check {
            check_distinct(&mut read)?;
            next_check = next_check.saturating_mul(2);
        }
    }
    check_distinct(&mut read)?;
    if read.is_empty() {
        return Err(DumpError::Format.into());
    }
    read.sort_unstable_by(ScoredMember::order);
    Ok(Box::new(|context, name, expire_at_ms| {
        Box::pin(restore(context, name, read, expire_at_ms))
    }))
}

/// Sorts members by their bytes, and checks that no member is repeated.
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

async fn restore(
    context: &WriteContext<'_>,
    name: &Bytes,
    members: Vec<ScoredMember>,
    expire_at_ms: Option<i64>,
) -> Result<(), CommandError> {
    store(context, name, &members).await?;
    if expire_at_ms.is_some()
        && let Some(mut key) = context.find_any(name).await?
    {
        context.set_expiry(&mut key, expire_at_ms);
    }
    Ok(())
}

/// Members and scores as a payload.
fn payload(words: Vec<Vec<u8>>) -> Option<Bytes> {
    let mut words = words.into_iter();
    let mut members: Vec<(Bytes, f64)> = Vec::new();
    while let Some(member) = words.next() {
        let score = parse_double(&words.next()?)?;
        members.push((member.into(), score));
    }
    small_sorted_set(&members).or_else(|| {
        let mut writer = SortedSetWriter::new(members.len() as u64);
        for (member, score) in members.iter().rev() {
            writer.push(member, *score);
        }
        Some(writer.finish())
    })
}

/// The first member of the set.
async fn figures(
    context: &ReadContext<'_>,
    key: &OpenKey,
) -> Result<Vec<StateFigures>, StoreError> {
    let prefix = (context.layout()).section_prefix(key.data(), Section::Scores);
    let range = KeyRange::children(&prefix);
    let first = context
        .outermost(&range, false, Isolation::Snapshot)
        .await?;
    let first = first.map(|row| place(&row, prefix.len()));
    let span = first.map(|first| QueueSpan {
        id: prefix.into(),
        last: first.clone(),
        first,
        first_digest: None,
    });
    context.ready_figures(key, span.into_iter().collect()).await
}
