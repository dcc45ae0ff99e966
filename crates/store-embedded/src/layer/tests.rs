use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::undo::Mark;

fn ranges(layer: &Layer) -> Vec<(&[u8], &[u8])> {
    layer
        .cleared()
        .iter()
        .map(|(begin, end)| (&**begin, &**end))
        .collect()
}

#[test]
fn ranges_that_touch_become_one() {
    let mut layer = Layer::default();
    layer.hide(b"a", b"b", &mut Log::default());
    layer.hide(b"c", b"d", &mut Log::default());
    assert_eq!(ranges(&layer).len(), 2);
    layer.hide(b"b", b"c", &mut Log::default());
    assert_eq!(ranges(&layer), [(b"a".as_slice(), b"d".as_slice())]);
}

#[test]
fn a_row_that_is_set_after_its_range_was_cleared_is_there() {
    let mut layer = Layer::default();
    layer.set(b"b", b"old", &mut Log::default());
    layer.clear_range(b"a", b"z", &mut Log::default());
    assert_eq!(layer.get(b"b"), Lookup::Cleared);
    layer.set(b"b", b"new", &mut Log::default());
    assert_eq!(layer.get(b"b"), Lookup::Value(b"new"));
    assert_eq!(layer.get(b"c"), Lookup::Cleared);
    assert_eq!(layer.get(b"z"), Lookup::Nothing);
}

#[test]
fn a_copy_stays_as_it_was() {
    let mut layer = Layer::default();
    layer.set(b"a", b"1", &mut Log::default());
    let copy = layer.clone();
    layer.clear_range(b"", b"z", &mut Log::default());
    layer.set(b"b", b"2", &mut Log::default());
    assert_eq!(copy.get(b"a"), Lookup::Value(b"1"));
    assert_eq!(copy.get(b"b"), Lookup::Nothing);
}

#[derive(Debug, Clone)]
enum Step {
    Set(u8, u8),
    Clear(u8),
    ClearRange(u8, u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..30_u8, any::<u8>()).prop_map(|(key, value)| Step::Set(key, value)),
        (0..30_u8).prop_map(Step::Clear),
        (0..30_u8, 0..31_u8).prop_map(|(begin, end)| Step::ClearRange(begin, end)),
    ]
}

/// The last change of each key: `None` if it was cleared.
type Model = BTreeMap<u8, Option<u8>>;

fn apply(layer: &mut Layer, model: &mut Model, step: &Step, log: &mut Log) {
    match *step {
        Step::Set(key, value) => {
            layer.set(&[key], &[value], log);
            model.insert(key, Some(value));
        }
        Step::Clear(key) => {
            layer.clear(&[key], log);
            model.insert(key, None);
        }
        Step::ClearRange(begin, end) => {
            layer.clear_range(&[begin], &[end], log);
            model.extend((begin..end).map(|key| (key, None)));
        }
    }
}

/// The layer's bytes, counted from scratch.
fn counted(layer: &Layer) -> usize {
    let entries = layer.rows().iter().chain(layer.cleared().iter());
    entries.map(|(first, second)| cost(first, second)).sum()
}

fn check(layer: &Layer, model: &Model) {
    for key in 0..31_u8 {
        match model.get(&key) {
            Some(Some(value)) => assert_eq!(layer.get(&[key]), Lookup::Value(&[*value])),
            Some(None) => assert_eq!(layer.get(&[key]), Lookup::Cleared, "{key}"),
            None => assert_eq!(layer.get(&[key]), Lookup::Nothing, "{key}"),
        }
    }
    let ranges = ranges(layer);
    assert!(ranges.iter().all(|(begin, end)| begin < end));
    assert!(
        ranges.windows(2).all(|pair| pair[0].1 < pair[1].0),
        "{ranges:?}"
    );
    assert_eq!(layer.bytes(), counted(layer));
}

#[test]
fn a_large_layer_says_the_same_with_a_filter() {
    let log = &mut Log::default();
    let key = |number: usize| format!("key {number}").into_bytes();
    let mut layer = Layer::default();
    for number in 0..FILTER_ROWS_MIN {
        layer.set(&key(number), b"old", log);
    }
    layer.filter_if_large();
    assert!(layer.filter.is_some());
    let mut newer = Layer::default();
    newer.clear(&key(0), log);
    newer.set(&key(FILTER_ROWS_MIN), b"new", log);
    layer.absorb(newer);
    assert_eq!(layer.get(&key(0)), Lookup::Cleared);
    let is_old = |number| layer.get(&key(number)) == Lookup::Value(b"old");
    assert!((1..FILTER_ROWS_MIN).all(is_old));
    assert_eq!(layer.get(&key(FILTER_ROWS_MIN)), Lookup::Value(b"new"));
    assert_eq!(layer.get(&key(FILTER_ROWS_MIN + 1)), Lookup::Nothing);
}

proptest! {
    #[test]
    fn a_layer_says_what_was_written_last(steps in proptest::collection::vec(step(), 0..60)) {
        let (mut layer, mut model) = (Layer::default(), Model::new());
        for step in &steps {
            apply(&mut layer, &mut model, step, &mut Log::default());
            check(&layer, &model);
        }
    }

    #[test]
    fn a_rollback_leaves_a_layer_as_it_was(
        kept in proptest::collection::vec(step(), 0..40),
        undone in proptest::collection::vec(step(), 0..40),
    ) {
        let (mut layer, mut model) = (Layer::default(), Model::new());
        let mut log = Log::default();
        for step in &kept {
            apply(&mut layer, &mut model, step, &mut log);
        }
        let before = layer.clone();
        let savepoint = log.savepoint(Mark::default());
        for step in &undone {
            apply(&mut layer, &mut Model::new(), step, &mut log);
        }
        log.rollback(savepoint, |undo| match undo {
            Undo::Row(key, old) => layer.restore_row(key, old),
            Undo::Cleared(begin, old) => layer.restore_cleared(begin, old),
            Undo::Add(..) => panic!("a layer adds nothing"),
        });
        check(&layer, &model);
        prop_assert_eq!(layer.rows(), before.rows());
        prop_assert_eq!(layer.cleared(), before.cleared());
    }

    #[test]
    fn a_layer_laid_onto_another_wins(
        older in proptest::collection::vec(step(), 0..30),
        newer in proptest::collection::vec(step(), 0..30),
    ) {
        let (mut below, mut model) = (Layer::default(), Model::new());
        for step in &older {
            apply(&mut below, &mut model, step, &mut Log::default());
        }
        let mut above = Layer::default();
        for step in &newer {
            apply(&mut above, &mut model, step, &mut Log::default());
        }
        below.absorb(above);
        check(&below, &model);
    }

    #[test]
    fn edges_of_cleared_ranges_are_found_from_both_sides(
        steps in proptest::collection::vec(step(), 0..40)
    ) {
        let (mut layer, mut model) = (Layer::default(), Model::new());
        for step in &steps {
            apply(&mut layer, &mut model, step, &mut Log::default());
        }
        for key in 0..32_u8 {
            let key = [key];
            let at = key.as_slice();
            let over = ranges(&layer).into_iter().find(|(b, e)| *b <= at && at < *e);
            prop_assert_eq!(layer.cleared_over(at), over);
            let before = ranges(&layer).into_iter().find(|(b, e)| *b < at && at <= *e);
            prop_assert_eq!(layer.cleared_before(at), before.map(|(begin, _)| begin));
        }
    }
}
