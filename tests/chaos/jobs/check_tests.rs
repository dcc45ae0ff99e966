//! The checks detect errors.

use super::check::check;
use super::state::{DeadLetter, State};
use super::{Act, Added, Delivered, Group, Ledger, References, Verb, dead_letters, key};
use crate::history::Payload;
use crate::streams::{Entry, EntryId};

const GROUP: Group = Group {
    stream: 0,
    number: 0,
};
/// Long enough for an entry to be handed out again.
const LONG: u64 = 1_000_000_000;

fn entry(number: u32) -> Entry {
    (EntryId(u64::from(number), 0), Payload { client: 1, number })
}

/// Delivered at a moment, each with the number of its deliveries.
fn delivered(at: u64, numbers: &[(u32, u64)]) -> Delivered {
    let entries = numbers.iter();
    Delivered {
        group: GROUP,
        entries: entries
            .map(|(number, count)| (entry(*number), Some(*count)))
            .collect(),
        invoked: at * LONG,
        ended: at * LONG + 1,
    }
}

fn act(verb: Verb, number: u32, answer: i64) -> Act {
    Act {
        verb,
        group: GROUP,
        id: entry(number).0,
        invoked: 50 * LONG,
        answer: Some((answer, 50 * LONG + 1)),
    }
}

fn dead(number: u32, deliveries: u64) -> DeadLetter {
    DeadLetter {
        stream: key(GROUP.stream),
        group: "g0".to_owned(),
        id: entry(number).0,
        payload: entry(number).1,
        deliveries,
    }
}

/// Six entries: acknowledged, pending, a dead letter, deleted by XACKDEL, delivered with a release
/// in between, and not delivered. The other groups got nothing before the end.
fn good() -> (Ledger, State) {
    let added = (1..=6).map(|number| Added {
        stream: 0,
        payload: entry(number).1,
        id: Some(entry(number).0),
    });
    let ledger = Ledger {
        added: added.collect(),
        delivered: vec![
            delivered(1, &[(1, 1), (2, 1)]),
            delivered(2, &[(1, 2), (3, 1)]),
            delivered(3, &[(3, 2), (4, 1), (5, 1)]),
            delivered(4, &[(2, 2)]),
        ],
        acts: vec![
            act(Verb::Acknowledge, 1, 1),
            act(Verb::Acknowledge, 1, 0),
            act(Verb::AcknowledgeAndDelete(References::Acknowledged), 4, 1),
            act(Verb::Release(false), 5, 1),
            act(Verb::Acknowledge, 5, 1),
        ],
    };
    let left: Vec<Entry> = [1, 2, 3, 5, 6].map(entry).to_vec();
    let mut state = State {
        streams: vec![left.clone(), Vec::new()],
        dead: vec![vec![dead(3, 2)], Vec::new()],
        dead_at_last: vec![vec![dead(3, 2), dead(2, 2)], Vec::new()],
        ..State::default()
    };
    for group in Group::all() {
        state.drained.insert(group, Vec::new());
        state.pending.insert(group, Default::default());
    }
    state.drained.insert(GROUP, vec![entry(6)]);
    let pending = [(2, 2), (6, 1)].map(|(number, count)| (entry(number).0, count));
    state.pending.insert(GROUP, pending.into());
    let other = Group { number: 1, ..GROUP };
    let pending = left.iter().map(|(id, _)| (*id, 1)).collect();
    state.drained.insert(other, left);
    state.pending.insert(other, pending);
    (ledger, state)
}

/// In the other group, somebody has acknowledged the deleted entry.
fn acknowledged_by_the_other(mut ledger: Ledger) -> Ledger {
    ledger.acts.push(Act {
        group: Group { number: 1, ..GROUP },
        ..act(Verb::Acknowledge, 4, 1)
    });
    ledger
}

fn wrong(change: impl Fn(&mut Ledger, &mut State)) -> String {
    let (ledger, mut state) = good();
    let mut ledger = acknowledged_by_the_other(ledger);
    change(&mut ledger, &mut state);
    check(&[ledger], &state).unwrap_err()
}

#[test]
fn a_sound_history_passes() {
    let (ledger, state) = good();
    let told = check(&[acknowledged_by_the_other(ledger)], &state);
    let told = told.unwrap();
    assert_eq!(
        told,
        "8 jobs delivered, 3 again, 1 dead letters, 1 deleted; "
    );
    assert_eq!(dead_letters(0), "dead:0");
}

#[test]
fn an_entry_that_is_deleted_before_all_have_acknowledged_it_is_found() {
    let (ledger, state) = good();
    let found = check(&[ledger], &state).unwrap_err();
    assert!(found.contains("jobs:0 g1: 4-0 is lost"), "{found}");
    let found = wrong(|_, state| {
        let other = Group { number: 1, ..GROUP };
        let pending = state.pending.get_mut(&other).unwrap();
        pending.insert(entry(4).0, 1);
    });
    assert!(found.contains("acknowledged, and is pending"), "{found}");
}

#[test]
fn wrong_streams_are_found() {
    let found = wrong(|_, state| {
        state.streams[0].remove(1);
    });
    assert!(found.contains("acknowledged and lost"), "{found}");
    let found = wrong(|_, state| state.streams[0].insert(3, entry(4)));
    assert!(found.contains("deleted and is there"), "{found}");
    let found = wrong(|_, state| state.streams[0].push(entry(9)));
    assert!(found.contains("nowhere"), "{found}");
    let found = wrong(|ledger, _| {
        for _ in 0..2 {
            let again = act(Verb::Delete(References::Acknowledged), 4, 1);
            ledger.acts.push(again);
        }
    });
    assert!(found.contains("deleted twice"), "{found}");
}

#[test]
fn wrong_deliveries_are_found() {
    let found = wrong(|ledger, _| ledger.delivered.push(delivered(5, &[(2, 2)])));
    assert!(found.contains("delivery 2 of 2-0 came twice"), "{found}");
    let found = wrong(|ledger, _| {
        ledger.delivered.push(Delivered {
            entries: vec![(entry(2), None)],
            ..delivered(4, &[])
        });
    });
    assert!(found.contains("twice at once"), "{found}");
    let found = wrong(|ledger, _| ledger.delivered[2] = delivered(3, &[(4, 1), (3, 2)]));
    assert!(found.contains("after the new"), "{found}");
    let found = wrong(|ledger, _| ledger.delivered[0] = delivered(3, &[(1, 1), (2, 1)]));
    assert!(found.contains("new after later"), "{found}");
    let found = wrong(|ledger, _| ledger.delivered[0] = delivered(1, &[(2, 1), (1, 1)]));
    assert!(found.contains("in one reply"), "{found}");
    let found = wrong(|ledger, _| {
        let again = (3..6).map(|count| delivered(count + 2, &[(2, count)]));
        ledger.delivered.extend(again);
    });
    assert!(found.contains("delivered 5 times"), "{found}");
}

#[test]
fn a_release_excuses_a_delivery_that_follows_at_once() {
    let (ledger, mut state) = good();
    let mut ledger = acknowledged_by_the_other(ledger);
    ledger.acts.retain(|act| act.id != entry(5).0);
    let between = 3 * LONG + 1;
    ledger.acts.push(Act {
        invoked: between,
        answer: Some((1, between + 1)),
        ..act(Verb::Release(false), 5, 1)
    });
    ledger.delivered.push(Delivered {
        invoked: between + 2,
        ended: between + 3,
        ..delivered(0, &[(5, 2)])
    });
    state.pending.get_mut(&GROUP).unwrap().insert(entry(5).0, 2);
    state.dead_at_last[0].push(dead(5, 2));
    check(&[ledger.clone()], &state).unwrap();
    ledger.acts.pop();
    let found = check(&[ledger], &state).unwrap_err();
    assert!(found.contains("5-0 was delivered twice at once"), "{found}");
}

#[test]
fn wrong_ends_are_found() {
    let found = wrong(|_, state| {
        state.pending.get_mut(&GROUP).unwrap().remove(&entry(2).0);
    });
    assert!(found.contains("2-0 is lost"), "{found}");
    let found = wrong(|_, state| {
        state.pending.get_mut(&GROUP).unwrap().insert(entry(3).0, 2);
    });
    assert!(found.contains("pending and a dead letter"), "{found}");
    let found = wrong(|ledger, _| ledger.acts.push(act(Verb::Acknowledge, 3, 1)));
    assert!(found.contains("is pending or a dead letter"), "{found}");
    let found = wrong(|ledger, _| ledger.acts.push(act(Verb::Acknowledge, 1, 1)));
    assert!(found.contains("more than once"), "{found}");
    let found = wrong(|ledger, _| ledger.acts.push(act(Verb::Acknowledge, 2, 0)));
    assert!(found.contains("was not pending"), "{found}");
    let found = wrong(|_, state| state.dead[0][0].payload = entry(1).1);
    assert!(found.contains("another entry"), "{found}");
    let found = wrong(|_, state| state.dead[0][0].deliveries = 1);
    assert!(found.contains("counts 1 of 2"), "{found}");
    let found = wrong(|_, state| {
        state.dead_at_last[0].pop();
    });
    assert!(found.contains("did not become a dead letter"), "{found}");
    let found = wrong(|_, state| state.dead_at_last[0].push(dead(1, 2)));
    assert!(found.contains("from nowhere"), "{found}");
    let found = wrong(|_, state| {
        state.drained.insert(GROUP, vec![entry(2), entry(6)]);
    });
    assert!(found.contains("was left"), "{found}");
}
