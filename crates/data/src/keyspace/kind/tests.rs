use std::collections::HashSet;

use bytes::Bytes;

use super::*;
use crate::table;
use quoin_rdb::testing::sealed;
use quoin_rdb::{PriorityQueueWriter, TaskQueueWriter, open};

#[test]
fn names_are_unique_and_lower_case() {
    let names: HashSet<_> = ValueKind::all().map(|kind| kind.name).collect();
    assert_eq!(names.len(), ValueType::ALL.len());
    assert!(names.iter().all(|name| *name == name.to_ascii_lowercase()));
}

#[test]
fn every_section_is_described_by_a_type() {
    let sections = ValueKind::all().flat_map(|kind| kind.sections);
    let described: HashSet<_> = sections.map(|kind| kind.section).collect();
    for section in Section::ALL {
        assert!(described.contains(section), "{section:?}");
    }
}

#[test]
fn descriptors_do_not_contradict_themselves() {
    for kind in ValueKind::all() {
        let name = kind.name;
        let sections: HashSet<_> = kind.sections.iter().map(|kind| kind.section).collect();
        assert_eq!(sections.len(), kind.sections.len(), "{name}");
        let is_elements = |kind: &&SectionKind| matches!(kind.holds, Holds::Elements(_));
        assert!(
            kind.sections.iter().filter(is_elements).count() <= 1,
            "{name}"
        );
        let popped = kind.queue.iter().flat_map(|queue| queue.sections).flatten();
        for section in popped {
            let elements = kind.sections.iter().find(is_elements);
            assert_eq!(Some(section), elements.map(|kind| kind.section), "{name}");
        }
        let mut indexed = kind.sections.iter().filter_map(|kind| match kind.holds {
            Holds::Index(groups) => Some(groups),
            _ => None,
        });
        for counter in kind.counters {
            assert!(
                indexed
                    .clone()
                    .any(|groups| groups.contains(&counter.group)),
                "{name}"
            );
        }
        assert!(indexed.all(|groups| !groups.is_empty()), "{name}");
    }
}

#[test]
fn a_payload_is_of_one_type_at_most() {
    let redis = (0..=u8::MAX).map(|rdb_type| sealed(10, &[rdb_type]).into());
    let own = [
        PriorityQueueWriter::new().finish(),
        TaskQueueWriter::new(0, &[]).finish(),
    ];
    for payload in redis.chain(own) {
        let payload = open(&payload).unwrap();
        let serializations = ValueKind::all().filter_map(|kind| kind.serialization.as_ref());
        let readers = serializations.filter(|one| (one.reads)(&payload)).count();
        let expected = usize::from(payload.own_type().is_some());
        assert!(
            (expected..=1).contains(&readers),
            "{readers} read {payload:?}"
        );
    }
}

#[test]
fn commands_wait_for_just_the_types_that_say_so() {
    let mut names = HashSet::new();
    let mut waited_for = HashSet::new();
    for line in [
        "BLPOP q 0",
        "BRPOP q 0",
        "BLMOVE q r LEFT LEFT 0",
        "BRPOPLPUSH q r 0",
        "BLMPOP 0 1 q LEFT",
        "BZPOPMIN q 0",
        "BZPOPMAX q 0",
        "BZMPOP 0 1 q MIN",
        "PQ.BPOPMIN q 0",
        "PQ.BPOPMAX q 0",
        "TASK.TAKE q BLOCK 0",
        "XREAD BLOCK 0 STREAMS q $",
        "XREADGROUP GROUP g c BLOCK 0 STREAMS q >",
    ] {
        let words = line.split(' ').map(str::to_owned).map(Bytes::from);
        let arguments: Vec<Bytes> = words.collect();
        let row = table::find(&arguments[0]).unwrap();
        let spec = row.waits.unwrap()(&arguments, 0).unwrap().unwrap();
        names.insert(row.name);
        waited_for.insert(spec.value_type);
    }
    let waiting = table::all().iter().filter(|row| row.waits.is_some());
    assert_eq!(names, waiting.map(|row| row.name).collect());
    for value_type in ValueType::ALL {
        let is_waited_for = waited_for.contains(value_type);
        assert_eq!(
            value_type.kind().is_waited_for,
            is_waited_for,
            "{value_type:?}"
        );
    }
}
