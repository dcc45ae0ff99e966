//! The checks detect errors.

use super::check::check;
use super::state::State;
use super::{Acknowledged, Added, Delivered, Entry, EntryId, Group, Ledger};
use crate::history::Payload;

const GROUP: Group = Group {
    stream: 0,
    number: 0,
};

fn entry(number: u32) -> Entry {
    (EntryId(u64::from(number), 0), Payload { client: 1, number })
}

fn delivered(numbers: &[u32]) -> Delivered {
    let times = u64::from(numbers[0]) * 10 + 5;
    Delivered {
        group: GROUP,
        entries: numbers.iter().copied().map(entry).collect(),
        invoked: times,
        ended: times + 1,
    }
}

fn acknowledged(number: u32, answer: Option<bool>) -> Acknowledged {
    Acknowledged {
        group: GROUP,
        id: entry(number).0,
        answer,
    }
}

/// Four entries, the last of which got no reply. The group got three, one of which is acknowledged
/// and one was claimed.
fn good() -> (Ledger, State) {
    let added = (1..=4).map(|number: u32| Added {
        stream: 0,
        payload: entry(number).1,
        invoked: u64::from(number) * 10,
        answer: (number < 4).then_some((entry(number).0, u64::from(number) * 10 + 1)),
    });
    let entries: Vec<Entry> = (1..=4).map(entry).collect();
    let ledger = Ledger {
        added: added.collect(),
        delivered: vec![delivered(&[1, 2]), delivered(&[3])],
        claimed: vec![(GROUP, entry(2))],
        acknowledged: vec![acknowledged(1, Some(true)), acknowledged(1, Some(false))],
        followed: vec![entries[..3].to_vec(), Vec::new()],
    };
    let mut state = State {
        streams: vec![entries, Vec::new()],
        ..State::default()
    };
    for group in Group::all() {
        state.drained.insert(group, Vec::new());
        state.pending.insert(group, Default::default());
    }
    let other = Group { number: 1, ..GROUP };
    let everything = state.streams[0].clone();
    let pending = everything.iter().map(|(id, _)| (*id, 1)).collect();
    state.pending.insert(other, pending);
    state.drained.insert(other, everything);
    state.drained.insert(GROUP, vec![entry(4)]);
    let pending = [(2, 2), (3, 1), (4, 1)].map(|(number, count)| (entry(number).0, count));
    state.pending.insert(GROUP, pending.into());
    (ledger, state)
}

fn wrong(change: impl Fn(&mut Ledger, &mut State)) -> String {
    let (mut ledger, mut state) = good();
    change(&mut ledger, &mut state);
    check(&[ledger], &state).unwrap_err()
}

#[test]
fn a_sound_history_passes() {
    let (ledger, state) = good();
    assert_eq!(check(&[ledger], &state), Ok(()));
}

#[test]
fn wrong_streams_are_found() {
    let found = wrong(|_, state| {
        state.streams[0].remove(1);
    });
    assert!(found.contains("lost"), "{found}");
    let found = wrong(|_, state| state.streams[0].push(entry(9)));
    assert!(found.contains("nowhere"), "{found}");
    let found = wrong(|_, state| state.streams[0].push((EntryId(9, 0), entry(1).1)));
    assert!(found.contains("twice"), "{found}");
    let found = wrong(|_, state| state.streams[0].swap(0, 1));
    assert!(found.contains("before"), "{found}");
    let found = wrong(|ledger, _| ledger.added[0].invoked = 25);
    assert!(found.contains("after a later id"), "{found}");
}

#[test]
fn a_gap_of_a_follower_is_found() {
    let found = wrong(|ledger, _| {
        ledger.followed[0].remove(1);
    });
    assert!(found.contains("follower"), "{found}");
}

#[test]
fn wrong_deliveries_are_found() {
    let found = wrong(|ledger, _| ledger.delivered.push(delivered(&[3])));
    assert!(found.contains("twice without a claim"), "{found}");
    let found = wrong(|ledger, _| ledger.delivered[0] = delivered(&[1, 3]));
    assert!(found.contains("no part"), "{found}");
    let found = wrong(|ledger, _| ledger.delivered[0].invoked = 50);
    assert!(found.contains("after later"), "{found}");
    let found = wrong(|_, state| {
        state.drained.insert(GROUP, vec![entry(3), entry(4)]);
    });
    assert!(found.contains("what was left"), "{found}");
}

#[test]
fn wrong_acknowledgements_are_found() {
    let found = wrong(|ledger, _| ledger.acknowledged.push(acknowledged(1, Some(true))));
    assert!(found.contains("2 times"), "{found}");
    let found = wrong(|ledger, _| ledger.acknowledged.push(acknowledged(2, Some(true))));
    assert!(found.contains("is pending"), "{found}");
    let found = wrong(|ledger, _| ledger.acknowledged.push(acknowledged(2, Some(false))));
    assert!(found.contains("was not pending"), "{found}");
    let found = wrong(|_, state| {
        state.pending.entry(GROUP).or_default().remove(&entry(3).0);
    });
    assert!(found.contains("lost"), "{found}");
    let found = wrong(|_, state| {
        state
            .pending
            .entry(GROUP)
            .or_default()
            .insert(entry(2).0, 1);
    });
    assert!(found.contains("deliveries"), "{found}");
}
