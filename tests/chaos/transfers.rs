//! Transactions: an element is in one of two lists exactly if it is in a sorted set, and a move
//! between the lists is recorded in a list exactly if it is recorded in another sorted set.

use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt;

use crate::client::{Answer, Client};
use crate::history::Payload;
use crate::resp::{Connection, Value};
use crate::workers::texts;

/// What is known about an element or a record of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Whether it was added is not known.
    PerhapsAdded,
    /// It exists, and nothing was done to remove it.
    Added,
    /// Whether it was removed is not known.
    PerhapsRemoved,
    /// It was removed.
    Removed,
}

/// What a client knows about the outcome of its transactions.
#[derive(Debug, Default, Clone)]
pub struct Ledger {
    /// Elements, each with every fate that a client knows of.
    pub elements: Vec<(Payload, Fate)>,
    /// Moves.
    pub moves: Vec<(Payload, Fate)>,
}

/// The final state.
#[derive(Debug, Default, Clone)]
pub struct State {
    pub first: Vec<Payload>,
    pub second: Vec<Payload>,
    pub marks: Vec<Payload>,
    pub moves: Vec<Payload>,
    pub moved: Vec<Payload>,
    /// How many moves a string and a hash count.
    pub counts: Vec<i64>,
}

const READS: [&str; 9] = [
    "LRANGE transfer:first 0 -1",
    "LRANGE transfer:second 0 -1",
    "ZRANGE transfer:marks 0 -1",
    "LLEN transfer:first",
    "LLEN transfer:second",
    "ZCARD transfer:marks",
    "ZCARD transfer:moved",
    "GET transfer:count",
    "HGET transfer:counts moves",
];

fn line(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// Adds, moves, removes and looks until it is told to stop.
pub fn transfer(client: &mut Client<'_>, number: u32, mut goes_on: impl FnMut() -> bool) -> Ledger {
    let mut ledger = Ledger::default();
    let mut payloads = 0;
    while goes_on() {
        client.wander();
        payloads += 1;
        let payload = Payload {
            client: number,
            number: payloads,
        };
        match client.random.random_range(0..6) {
            0 | 1 => add(client, payload, &mut ledger),
            2 | 3 => move_one(client, payload, &mut ledger),
            4 => remove_one(client, &mut ledger),
            _ => read_all(client),
        }
        std::thread::sleep(std::time::Duration::from_millis(
            client.random.random_range(0..15),
        ));
    }
    ledger
}

fn add(client: &mut Client<'_>, payload: Payload, ledger: &mut Ledger) {
    let commands = [
        line(&format!("RPUSH transfer:first {payload}")),
        line(&format!("ZADD transfer:marks 0 {payload}")),
    ];
    match client.transaction(&commands) {
        Answer::Refused => {}
        Answer::Unknown => ledger.elements.push((payload, Fate::PerhapsAdded)),
        Answer::Reply(reply) => {
            ledger.elements.push((payload, Fate::Added));
            expect_integer(client, &reply, 1, 1, "a new member is new");
        }
    }
}

fn move_one(client: &mut Client<'_>, payload: Payload, ledger: &mut Ledger) {
    let commands = [
        line("LMOVE transfer:first transfer:second LEFT RIGHT"),
        line(&format!("ZADD transfer:moved 0 {payload}")),
        line(&format!("RPUSH transfer:moves {payload}")),
        line("INCR transfer:count"),
        line("HINCRBY transfer:counts moves 1"),
    ];
    match client.transaction(&commands) {
        Answer::Refused => {}
        Answer::Unknown => ledger.moves.push((payload, Fate::PerhapsAdded)),
        Answer::Reply(reply) => {
            ledger.moves.push((payload, Fate::Added));
            expect_integer(client, &reply, 1, 1, "a new member is new");
        }
    }
}

/// Reads the first element, and removes it if nothing has changed meanwhile.
fn remove_one(client: &mut Client<'_>, ledger: &mut Ledger) {
    if !matches!(
        client.call(&line("WATCH transfer:second")),
        Answer::Reply(_)
    ) {
        return;
    }
    let Answer::Reply(found) = client.call(&line("LINDEX transfer:second 0")) else {
        return;
    };
    let Some(payload) = texts(&found).first().and_then(|text| text.parse().ok()) else {
        client.call(&line("UNWATCH"));
        return;
    };
    let commands = [
        line("LPOP transfer:second"),
        line(&format!("ZREM transfer:marks {payload}")),
    ];
    match client.transaction(&commands) {
        Answer::Refused => {}
        Answer::Unknown => ledger.elements.push((payload, Fate::PerhapsRemoved)),
        // It was changed.
        Answer::Reply(Value::Aggregate(_, None)) => {}
        Answer::Reply(reply) => {
            ledger.elements.push((payload, Fate::Removed));
            expect_integer(client, &reply, 1, 1, "what is removed is marked");
            if texts(&reply) != [payload.to_string()] {
                client.report(format!("{payload} was watched, and popped was {reply:?}"));
            }
        }
    }
}

fn read_all(client: &mut Client<'_>) {
    let commands: Vec<_> = READS.iter().map(|text| line(text)).collect();
    if let Answer::Reply(reply) = client.transaction(&commands)
        && let Err(wrong) = read_elements(&reply).and_then(|state| check_halves(&state))
    {
        client.report(format!("between transactions: {wrong}"));
    }
}

fn expect_integer(client: &Client<'_>, reply: &Value, index: usize, expected: i64, why: &str) {
    let items = reply.items().unwrap_or_default();
    if items.get(index).and_then(Value::integer) != Some(expected) {
        client.report(format!("{why}, but EXEC answered {reply:?}"));
    }
}

fn payloads(reply: Option<&Value>) -> Result<Vec<Payload>, String> {
    let texts = reply.map(texts).unwrap_or_default();
    let payloads = texts.iter().map(|text| text.parse());
    payloads
        .collect::<Result<_, ()>>()
        .map_err(|()| format!("not payloads: {texts:?}"))
}

/// Reads the reply to [`READS`], and checks that lengths match the content.
fn read_elements(reply: &Value) -> Result<State, String> {
    let items = reply.items().unwrap_or_default();
    let state = State {
        first: payloads(items.first())?,
        second: payloads(items.get(1))?,
        marks: payloads(items.get(2))?,
        ..State::default()
    };
    let state = State {
        counts: items.iter().skip(6).map(count_of).collect(),
        ..state
    };
    for (index, list) in [&state.first, &state.second, &state.marks]
        .iter()
        .enumerate()
    {
        let length = items.get(3 + index).and_then(Value::integer);
        if length != i64::try_from(list.len()).ok() {
            return Err(format!(
                "{}: {length:?} beside {}",
                READS[3 + index],
                list.len()
            ));
        }
    }
    Ok(state)
}

/// A counter that was never incremented does not exist.
fn count_of(reply: &Value) -> i64 {
    let text = texts(reply).pop();
    let count = reply.integer().or_else(|| text?.parse().ok());
    count.unwrap_or(0)
}

/// Reads everything once all is over.
pub fn read_state(connection: &mut Connection) -> Result<State, String> {
    let mut command = |text: &str| connection.command(&line(text)).unwrap();
    let read = Value::Aggregate(b'*', Some(READS.iter().map(|text| command(text)).collect()));
    Ok(State {
        moves: payloads(Some(&command("LRANGE transfer:moves 0 -1")))?,
        moved: payloads(Some(&command("ZRANGE transfer:moved 0 -1")))?,
        ..read_elements(&read)?
    })
}

fn check_halves(state: &State) -> Result<(), String> {
    let listed = [state.first.as_slice(), &state.second].concat();
    same("in the lists and marked", &listed, &state.marks)?;
    match state.counts.as_slice() {
        [moved, string, hash] if moved == string && moved == hash => Ok(()),
        counts => Err(format!("moves, counted by three types: {counts:?}")),
    }
}

fn same(what: &str, list: &[Payload], set: &[Payload]) -> Result<(), String> {
    let unique: BTreeSet<_> = list.iter().collect();
    if unique.len() < list.len() {
        return Err(format!("{what}: an element is there twice: {list:?}"));
    }
    let set: BTreeSet<_> = set.iter().collect();
    let half: Vec<_> = unique.symmetric_difference(&set).collect();
    if half.is_empty() {
        Ok(())
    } else {
        Err(format!("{what}: half a transaction, only in one: {half:?}"))
    }
}

/// Compares the final state with what clients know.
pub fn check(ledgers: &[Ledger], state: &State) -> Result<(), String> {
    check_halves(state)?;
    same("moves", &state.moves, &state.moved)?;
    let elements = ledgers.iter().flat_map(|ledger| &ledger.elements);
    let moves = ledgers.iter().flat_map(|ledger| &ledger.moves);
    check_fates("element", elements, &state.marks)?;
    check_fates("move", moves, &state.moves)
}

fn check_fates<'l>(
    what: &str,
    known: impl Iterator<Item = &'l (Payload, Fate)>,
    there: &[Payload],
) -> Result<(), String> {
    let there: BTreeSet<_> = there.iter().copied().collect();
    let mut fates: BTreeMap<Payload, Vec<Fate>> = BTreeMap::new();
    for (payload, fate) in known {
        fates.entry(*payload).or_default().push(*fate);
    }
    for (payload, fates) in &fates {
        let count = |fate| fates.iter().filter(|other| **other == fate).count();
        let is_there = there.contains(payload);
        if count(Fate::Removed) > 1 {
            return Err(format!("{what} {payload} was removed twice"));
        }
        if count(Fate::Removed) == 1 && is_there {
            return Err(format!("{what} {payload} is there though it was removed"));
        }
        if fates.as_slice() == [Fate::Added] && !is_there {
            return Err(format!("{what} {payload} is lost"));
        }
    }
    match there.iter().find(|payload| !fates.contains_key(payload)) {
        Some(payload) => Err(format!("{what} {payload} came from nowhere")),
        None => Ok(()),
    }
}

mod tests {
    use super::*;

    fn payload(number: u32) -> Payload {
        Payload { client: 1, number }
    }

    fn good() -> (Vec<Ledger>, State) {
        let ledger = Ledger {
            elements: vec![
                (payload(1), Fate::Added),
                (payload(2), Fate::Added),
                (payload(2), Fate::Removed),
                (payload(3), Fate::PerhapsAdded),
                (payload(4), Fate::Added),
                (payload(4), Fate::PerhapsRemoved),
            ],
            moves: vec![(payload(5), Fate::Added)],
        };
        let state = State {
            first: vec![payload(1)],
            second: vec![],
            marks: vec![payload(1)],
            moves: vec![payload(5)],
            moved: vec![payload(5)],
            counts: vec![1, 1, 1],
        };
        (vec![ledger], state)
    }

    #[test]
    fn whole_transactions_pass() {
        let (ledgers, state) = good();
        assert_eq!(check(&ledgers, &state), Ok(()));
    }

    #[test]
    fn half_a_transaction_is_found() {
        let (ledgers, mut state) = good();
        state.marks.clear();
        assert!(check(&ledgers, &state).unwrap_err().contains("half"));
        let (ledgers, mut state) = good();
        state.moves.clear();
        assert!(check(&ledgers, &state).unwrap_err().contains("half"));
    }

    #[test]
    fn a_move_that_one_type_has_not_counted_is_found() {
        for number in 0..3 {
            let (ledgers, mut state) = good();
            state.counts[number] = 0;
            assert!(check(&ledgers, &state).unwrap_err().contains("counted"));
        }
    }

    #[test]
    fn a_lost_transaction_is_found() {
        let (ledgers, mut state) = good();
        state.first.clear();
        state.marks.clear();
        assert!(check(&ledgers, &state).unwrap_err().contains("lost"));
    }

    #[test]
    fn a_transaction_that_was_taken_back_is_found() {
        let (ledgers, mut state) = good();
        state.second.push(payload(2));
        state.marks.push(payload(2));
        assert!(check(&ledgers, &state).unwrap_err().contains("removed"));
    }

    #[test]
    fn an_element_that_moved_and_stayed_is_found() {
        let (ledgers, mut state) = good();
        state.second.push(payload(1));
        assert!(check(&ledgers, &state).unwrap_err().contains("twice"));
    }

    #[test]
    fn a_transaction_of_nobody_is_found() {
        let (ledgers, mut state) = good();
        state.first.push(payload(9));
        state.marks.push(payload(9));
        assert!(check(&ledgers, &state).unwrap_err().contains("nowhere"));
    }
}
