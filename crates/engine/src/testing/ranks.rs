//! Blocks for tests, and a check of their counts.

use std::sync::Arc;

use bytes::Bytes;

use crate::testing::Bench;
use crate::{Executor, Reaper};
use quoin_data::command::access::KeyLocks;
use quoin_data::keyspace::kind::TypeKind;
use quoin_data::rows::ranks::{RankMaintenance, RankShape};
use quoin_layout::{Id, KeyRange, Layout, Meta, decode_counter};
use quoin_store::{Isolation, KeyValue, RangeQuery};

/// A shape that gives a few elements several levels of blocks.
pub const TINY: RankShape = RankShape {
    block_elements: 3,
    block_elements_max: 6,
    fan: 2,
    fan_max: 3,
    top_blocks_max: 4,
    parts_per_pass: 16,
};

/// A shape that gives a few thousand elements several levels of blocks.
pub const SMALL: RankShape = RankShape {
    block_elements: 24,
    block_elements_max: 48,
    fan: 3,
    fan_max: 4,
    top_blocks_max: 8,
    parts_per_pass: 512,
};

/// Makes one pass over a key's blocks. Returns where the next pass begins, if there is one.
pub async fn maintain_piece(
    executor: &Executor,
    name: &str,
    from: RankMaintenance,
    shape: &RankShape,
) -> Option<RankMaintenance> {
    let (name, shape) = (Bytes::copy_from_slice(name.as_bytes()), shape.clone());
    let from = Arc::new(from);
    let maintained = executor.transact(0, KeyLocks::Nothing, move |context| {
        let (name, from, shape) = (name.clone(), Arc::clone(&from), shape.clone());
        Box::pin(async move { Ok(context.maintain_ranks(&name, &from, &shape).await?) })
    });
    maintained.await.unwrap()
}

/// Makes as many passes as needed.
pub async fn maintain_all(executor: &Executor, name: &str, shape: &RankShape) {
    let mut from = Some(RankMaintenance::default());
    while let Some(place) = from {
        from = maintain_piece(executor, name, place, shape).await;
    }
}

/// [`maintain_all`] on a bench.
pub fn maintain(bench: &Bench, name: &str, shape: &RankShape) {
    bench.block_on(maintain_all(&bench.executor, name, shape));
}

/// Lets background work create the blocks that commands have asked for.
pub fn maintain_wanted(bench: &Bench) {
    let mut reaper = Reaper::new(&bench.executor);
    while bench
        .block_on(reaper.maintain_ranks(&bench.executor))
        .unwrap()
    {}
}

fn rows(bench: &Bench, range: &KeyRange) -> Vec<KeyValue> {
    let snapshot = bench.store.begin_read().unwrap();
    let query = RangeQuery {
        begin: &range.begin,
        end: &range.end,
        limit: usize::MAX,
        reverse: false,
        isolation: Isolation::Snapshot,
    };
    bench.block_on(snapshot.get_range(query)).unwrap()
}

/// A key's metadata in database 0.
pub fn meta(bench: &Bench, name: &str) -> Option<Meta> {
    let layout = &bench.executor.environment().layout;
    let namespace = Id {
        instance: 0,
        sequence: 0,
    };
    let name = quoin_layout::KeyName::new(&Bytes::copy_from_slice(name.as_bytes()));
    let snapshot = bench.store.begin_read().unwrap();
    let row = snapshot.get(&layout.meta_key(namespace, &name), Isolation::Snapshot);
    bench
        .block_on(row)
        .unwrap()
        .map(|row| Meta::decode(&row).unwrap())
}

/// Checks all counts of a key against its elements. Returns the number of blocks of each level.
pub fn check_blocks(bench: &Bench, name: &str) -> Vec<usize> {
    let Some(meta) = meta(bench, name) else {
        return Vec::new();
    };
    let layout: &Layout = &bench.executor.environment().layout;
    let data = meta.data;
    let kind = meta.value_type.kind();
    let section = kind.ranked_section().unwrap();
    let prefix = layout.section_prefix(data, section);
    let elements: Vec<KeyValue> = rows(bench, &KeyRange::children(&prefix))
        .into_iter()
        .filter(|row| !layout.is_meta_copy(&row.key))
        .collect();
    let mut blocks = Vec::new();
    let mut below: Option<Vec<Bytes>> = None;
    for level in 1..=meta.rank_levels {
        let mut before = 0;
        let mut ends = Vec::new();
        for row in rows(bench, &layout.rank_counts(data, level)) {
            let (_, end) = layout.read_rank_count_key(data, &row.key).unwrap();
            let until = { elements.iter() }.filter(|row| row.key[prefix.len()..] < end[..]);
            let until: usize = until.map(|row| kind.elements_in(section, row)).sum();
            let count = decode_counter(Some(&row.value)).unwrap();
            assert_eq!(count, (until - before) as i64, "level {level}, end {end:?}");
            before = until;
            let ends_below = below.as_ref().is_none_or(|below| below.contains(&end));
            assert!(ends_below, "a block of level {level} ends within one below");
            ends.push(end);
        }
        let marks = rows(bench, &layout.rank_marks(data, level));
        assert_eq!(marks.len(), ends.len());
        for (mark, end) in marks.iter().zip(&ends) {
            assert_eq!(mark.key, layout.rank_mark_key(data, level, end));
        }
        blocks.push(ends.len());
        below = Some(ends);
    }
    blocks
}
