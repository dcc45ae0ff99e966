//! Random operations against a model, across the limits of an inline value and of pieces.

use bytes::Bytes;

use crate::keyspace::kind::INLINE_BYTES_MAX;
use crate::string::{PIECE, StringValue, StringValueMut, set};
use crate::testing::environment;
use crate::unit::Unit;
use crate::unit::context::WriteContext;
use quoin_base::random::{Random, SeededRandom};
use quoin_engine::testing::Bench;
use quoin_layout::ValueType;

static NAME: Bytes = Bytes::from_static(b"key");

fn with_context_on_both_stores(test: impl AsyncFn(&WriteContext<'_>)) {
    for bench in [Bench::embedded(), Bench::cluster_like()] {
        let environment = environment(&bench);
        let transaction = bench.store.begin_write().unwrap();
        let unit = Unit::new(&*transaction, &environment);
        bench.block_on(test(&unit.write_context(0)));
    }
}

fn random_bytes(random: &dyn Random, length: u64) -> Bytes {
    (0..length).map(|_| random.next_u64() as u8).collect()
}

/// A length or offset: mostly small, sometimes near the limit of an inline value or of a piece.
fn random_length(random: &dyn Random) -> u64 {
    match random.below(10) {
        0..6 => random.below(200),
        6..8 => INLINE_BYTES_MAX as u64 - 3 + random.below(7),
        _ => random.below(3) * PIECE + random.below(7),
    }
}

#[test]
fn random_changes_equal_a_model() {
    with_context_on_both_stores(async |context| {
        let random = SeededRandom::new(5);
        let mut model: Vec<u8> = Vec::new();
        for _ in 0..300 {
            let bytes = random_length(&random);
            let bytes = random_bytes(&random, bytes);
            let found = context.find(&NAME, ValueType::String).await.unwrap();
            match (random.below(10), found) {
                (0, _) | (_, None) => {
                    set(context, &NAME, &bytes, None).await.unwrap();
                    model = bytes.to_vec();
                }
                (1, Some(mut key)) => {
                    let mut string = StringValueMut::open(context, &mut key);
                    string.replace(&bytes).await.unwrap();
                    model = bytes.to_vec();
                }
                (_, Some(mut key)) => {
                    let offset = random_length(&random);
                    let mut string = StringValueMut::open(context, &mut key);
                    let length = string.write(offset, &bytes).await.unwrap();
                    if !bytes.is_empty() {
                        let offset = offset as usize;
                        model.resize(model.len().max(offset + bytes.len()), 0);
                        model[offset..offset + bytes.len()].copy_from_slice(&bytes);
                    }
                    assert_eq!(length, model.len() as u64);
                }
            }
            let key = context.find_any(&NAME).await.unwrap().unwrap();
            let string = StringValue::open(context, &key);
            assert_eq!(string.get().await.unwrap(), model);
            let length = context.length(&key, context.isolation).await.unwrap();
            assert_eq!(length, model.len() as i64);
            let begin = random.below(model.len() as u64 + 1);
            let end = begin + random.below(model.len() as u64 + 1 - begin);
            let range = string.range(begin, end).await.unwrap();
            assert_eq!(range, model[begin as usize..end as usize]);
        }
    });
}

#[test]
fn a_write_far_beyond_the_end_writes_one_piece() {
    let bench = Bench::embedded();
    let environment = environment(&bench);
    let transaction = bench.store.begin_write().unwrap();
    let unit = Unit::new(&*transaction, &environment);
    bench.block_on(async {
        let context = unit.write_context(0);
        let value = Bytes::from_static(b"short");
        let mut key = set(&context, &NAME, &value, None).await.unwrap();
        let before = transaction.mutation_count();
        let far = 1 << 29;
        let mut string = StringValueMut::open(&context, &mut key);
        let length = string.write(far, b"x").await.unwrap();
        assert_eq!(length, far + 1);
        // Two pieces, the metadata, and the length.
        assert!(transaction.mutation_count() - before <= 4);
        let string = StringValue::open(&context, &key);
        let end = string.range(far - 2, far + 1).await.unwrap();
        assert_eq!(end.as_ref(), b"\0\0x");
    });
}

#[test]
fn an_empty_string_exists() {
    with_context_on_both_stores(async |context| {
        set(context, &NAME, &Bytes::new(), None).await.unwrap();
        let key = context.find_any(&NAME).await.unwrap().unwrap();
        let string = StringValue::open(context, &key);
        assert_eq!(string.get().await.unwrap(), Bytes::new());
        context.remove_if_empty(&key).await.unwrap();
        assert!(context.find_any(&NAME).await.unwrap().is_some());
    });
}
