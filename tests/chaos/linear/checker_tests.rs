//! The search accepts what can be explained, and detects what cannot.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::checker::Verdict;
use super::commands::{Keys, draw};
use super::history::{Record, check};
use super::model::{Ask, Exactness, Reply, SET, Side, State, outcomes};
use super::values::ValueAsk;
use crate::history::Moment;

const EXACT: Exactness = Exactness::ALL;
const CLUSTER: Exactness = Exactness::CLUSTER;

fn record(invoked: Moment, ended: Moment, ask: Ask, reply: Reply) -> Record {
    Record {
        ended: Some(ended),
        reply: Some(reply),
        ..unanswered(invoked, ask)
    }
}

fn unanswered(invoked: Moment, ask: Ask) -> Record {
    Record::sent(0, invoked, ask, None)
}

fn push(invoked: Moment, ended: Moment, value: u32, length: i64) -> Record {
    let ask = Ask::Push(0, Side::Back, vec![value]);
    record(invoked, ended, ask, Reply::Integer(length))
}

fn pop(invoked: Moment, ended: Moment, value: Option<u32>) -> Record {
    pop_of(invoked, ended, 1, value.as_slice())
}

fn pop_of(invoked: Moment, ended: Moment, count: usize, values: &[u32]) -> Record {
    let items = values.iter().map(|value| (*value, 0)).collect();
    let from = (!values.is_empty()).then_some(0);
    let ask = Ask::Pop(vec![0], Side::Front, count);
    record(invoked, ended, ask, Reply::Popped(from, items))
}

fn read(invoked: Moment, ended: Moment, values: &[u32]) -> Record {
    let items = values.iter().map(|value| (*value, 0)).collect();
    record(invoked, ended, Ask::Read(0), Reply::Items(items))
}

#[track_caller]
fn assert_linearizable(records: &[Record]) {
    assert_eq!(check(records, EXACT), Verdict::Linearizable);
}

#[track_caller]
fn assert_not(records: &[Record]) {
    for exactness in [EXACT, CLUSTER] {
        let verdict = check(records, exactness);
        assert!(
            matches!(verdict, Verdict::NotLinearizable(_)),
            "{verdict:?}"
        );
    }
}

#[test]
fn commands_one_after_the_other_are_explained_by_their_order() {
    assert_linearizable(&[push(0, 1, 7, 1), push(2, 3, 8, 2), pop(4, 5, Some(7))]);
    assert_not(&[push(0, 1, 7, 1), push(2, 3, 8, 2), pop(4, 5, Some(8))]);
}

#[test]
fn commands_at_the_same_time_may_be_in_any_order() {
    assert_linearizable(&[push(0, 9, 7, 2), push(1, 8, 8, 1), pop(10, 11, Some(8))]);
    assert_linearizable(&[push(0, 9, 7, 1), pop(1, 8, None), read(10, 11, &[7])]);
}

#[test]
fn a_stale_read_is_found() {
    assert_not(&[push(0, 1, 7, 1), read(2, 3, &[])]);
}

#[test]
fn reads_that_disagree_on_an_order_are_found() {
    assert_not(&[
        push(0, 9, 7, 1),
        push(0, 9, 8, 2),
        read(10, 11, &[7, 8]),
        read(12, 13, &[8, 7]),
    ]);
}

#[test]
fn a_lost_element_is_found() {
    assert_not(&[push(0, 1, 7, 1), pop(2, 3, None)]);
}

#[test]
fn an_element_that_two_pops_got_is_found() {
    assert_not(&[push(0, 1, 7, 1), pop(2, 9, Some(7)), pop(3, 8, Some(7))]);
}

#[test]
fn half_a_transaction_is_found() {
    let both = Ask::Transaction(vec![Ask::Push(0, Side::Back, vec![7]), Ask::Add(1, 5)]);
    let replies = Reply::All(vec![Reply::Integer(1), Reply::Integer(1)]);
    let score = |invoked, ended, score| record(invoked, ended, Ask::Score(1), Reply::Number(score));
    let writing = record(0, 9, both, replies);
    assert_linearizable(&[writing.clone(), read(1, 2, &[7]), score(3, 4, Some(5))]);
    assert_not(&[writing.clone(), read(1, 2, &[7]), score(3, 4, None)]);
    let seen = Ask::Transaction(vec![Ask::Read(0), Ask::Score(1)]);
    let half = Reply::All(vec![Reply::Items(vec![(7, 0)]), Reply::Number(None)]);
    assert_not(&[writing, record(1, 2, seen, half)]);
}

#[test]
fn two_clients_that_are_answered_one_number_are_found() {
    let counted = |invoked, ended, reply| {
        let ask = Ask::Value(ValueAsk::Increment(1));
        record(invoked, ended, ask, Reply::Integer(reply))
    };
    assert_linearizable(&[counted(0, 9, 2), counted(1, 8, 1)]);
    assert_not(&[counted(0, 9, 1), counted(1, 8, 1)]);
}

#[test]
fn a_lock_that_two_clients_hold_is_found() {
    let set = |number| {
        record(
            0,
            9,
            Ask::Value(ValueAsk::SetIfAbsent(number)),
            Reply::Integer(1),
        )
    };
    let deleted = Ask::Value(ValueAsk::GetAndDelete);
    let delete = record(1, 8, deleted, Reply::Number(Some(4)));
    assert_not(&[set(4), set(5)]);
    assert_linearizable(&[set(4), set(5), delete]);
}

#[test]
fn a_member_that_is_popped_twice_is_found() {
    let add = |name| {
        record(
            0,
            1,
            Ask::Value(ValueAsk::AddMember(name)),
            Reply::Integer(1),
        )
    };
    let pop = |member| record(2, 9, Ask::Value(ValueAsk::PopMember), Reply::Number(member));
    assert_linearizable(&[add(1), add(2), pop(Some(2)), pop(Some(1)), pop(None)]);
    assert_not(&[add(1), add(2), pop(Some(2)), pop(Some(2))]);
    assert_not(&[add(1), pop(None)]);
}

#[test]
fn what_was_not_answered_takes_effect_at_any_time_or_never_but_once() {
    let lost = unanswered(0, Ask::Push(0, Side::Back, vec![7]));
    assert_linearizable(&[lost.clone(), read(5, 6, &[])]);
    assert_linearizable(&[lost.clone(), read(5, 6, &[7])]);
    assert_linearizable(&[lost.clone(), read(5, 6, &[]), read(7, 8, &[7])]);
    assert_not(&[lost.clone(), read(5, 6, &[7, 7])]);
    assert_not(&[lost.clone(), read(5, 6, &[7]), read(7, 8, &[])]);
    // Not before it was asked for.
    assert_not(&[
        read(0, 1, &[9]),
        unanswered(2, Ask::Push(0, Side::Back, vec![9])),
    ]);
}

#[test]
fn a_pop_that_was_not_answered_explains_what_is_missing() {
    let lost = unanswered(2, Ask::Pop(vec![0], Side::Front, 1));
    assert_linearizable(&[
        push(0, 1, 7, 1),
        lost.clone(),
        read(3, 4, &[7]),
        read(5, 6, &[]),
    ]);
    assert_not(&[push(0, 1, 7, 1), lost, read(3, 4, &[]), read(5, 6, &[7])]);
}

#[test]
fn a_wrong_length_is_found_where_lengths_are_exact() {
    let wrong = [push(0, 1, 7, 1), push(2, 3, 8, 1)];
    assert!(matches!(check(&wrong, EXACT), Verdict::NotLinearizable(_)));
    assert_eq!(check(&wrong, CLUSTER), Verdict::Linearizable);
    let length = |length| record(4, 5, Ask::Length(0), Reply::Integer(length));
    assert_not(&[push(0, 1, 7, 1), length(2)]);
}

#[test]
fn on_a_cluster_a_pop_may_have_seen_earlier_that_there_are_no_more() {
    let between = [
        push(0, 1, 7, 1),
        pop_of(2, 9, 2, &[7]),
        push(3, 4, 8, 2),
        read(5, 6, &[7, 8]),
    ];
    assert_eq!(check(&between, CLUSTER), Verdict::Linearizable);
    assert!(matches!(
        check(&between, EXACT),
        Verdict::NotLinearizable(_)
    ));
    // But not before it was asked for.
    assert_not(&[
        push(0, 1, 7, 1),
        push(2, 3, 8, 2),
        pop_of(4, 9, 2, &[7]),
        read(10, 11, &[8]),
    ]);
}

#[test]
fn on_a_cluster_a_pop_need_not_see_what_came_while_others_emptied_the_list() {
    let emptied = |push_invoked, push_ended, pop_ended| {
        [
            push(0, 1, 7, 1),
            pop_of(2, 9, 1, &[7]),
            push(push_invoked, push_ended, 8, 2),
            read(push_ended + 1, push_ended + 2, &[7, 8]),
            pop_of(2, pop_ended, 1, &[]),
            read(20, 21, &[8]),
        ]
    };
    assert_eq!(check(&emptied(3, 4, 9), CLUSTER), Verdict::Linearizable);
    let verdict = check(&emptied(3, 4, 9), EXACT);
    assert!(matches!(verdict, Verdict::NotLinearizable(_)));
    // It must see what existed before the request.
    let mut late = emptied(3, 4, 9);
    late[4] = pop_of(5, 9, 1, &[]);
    assert_not(&late);
}

#[test]
fn on_a_cluster_pushes_at_the_same_time_may_have_found_the_same_place() {
    let seen_between = |push_ended| {
        [
            push(0, push_ended, 7, 1),
            push(1, 2, 8, 1),
            read(3, 4, &[8]),
            read(20, 21, &[7, 8]),
        ]
    };
    assert_eq!(check(&seen_between(9), CLUSTER), Verdict::Linearizable);
    let verdict = check(&seen_between(9), EXACT);
    assert!(matches!(verdict, Verdict::NotLinearizable(_)));
    // A push that begins after another has ended is placed after it.
    assert_not(&[push(0, 1, 8, 1), push(2, 3, 7, 2), read(4, 5, &[7, 8])]);
    // A push to the head comes before a push to the tail.
    let to_head = Ask::Push(0, Side::Front, vec![9]);
    let to_head = record(0, 9, to_head, Reply::Integer(1));
    assert_not(&[to_head, push(0, 9, 7, 2), read(10, 11, &[7, 9])]);
}

#[test]
fn on_a_cluster_what_is_moved_may_have_come_in_its_batch_and_found_its_place_before() {
    let to_other = Ask::Push(1, Side::Back, vec![7]);
    let moving = || Ask::Move((1, Side::Back), (0, Side::Front));
    let moved = || Reply::Items(vec![(7, 0)]);
    let history = |ask: Ask, reply: Reply, invoked: Moment| {
        [
            push(0, 1, 9, 1),
            // Takes effect with the push to the other list, after that was seen to be empty, but is
            // placed after what was pushed to the head by then.
            record(invoked, 20, ask, reply),
            record(2, 20, to_other.clone(), Reply::Integer(1)),
            record(3, 4, Ask::Push(0, Side::Front, vec![8]), Reply::Integer(2)),
            record(5, 6, Ask::Length(1), Reply::Integer(0)),
            read(21, 22, &[8, 7, 9]),
        ]
    };
    let both = || Ask::Transaction(vec![moving(), Ask::Remove(3)]);
    let replies = || Reply::All(vec![moved(), Reply::Integer(0)]);
    for (ask, reply) in [(moving(), moved()), (both(), replies())] {
        let overlapping = history(ask.clone(), reply.clone(), 2);
        assert_eq!(check(&overlapping, CLUSTER), Verdict::Linearizable);
        let verdict = check(&overlapping, EXACT);
        assert!(matches!(verdict, Verdict::NotLinearizable(_)));
        // It must see what existed before the request.
        assert_not(&history(ask, reply, 5));
    }
}

fn in_pipeline(number: u64, record: Record) -> Record {
    Record {
        pipeline: Some(number),
        ..record
    }
}

#[test]
fn a_read_that_has_overtaken_the_write_before_it_in_its_pipeline_is_found() {
    let push_to = |key, value| {
        let ask = Ask::Push(key, Side::Back, vec![value]);
        record(0, 9, ask, Reply::Integer(1))
    };
    let length = |key, length| record(0, 9, Ask::Length(key), Reply::Integer(length));
    // Each of two clients pushes to a list and checks whether the other has.
    let alone = |first, second| {
        [
            push_to(0, 7),
            length(1, first),
            push_to(1, 8),
            length(0, second),
        ]
    };
    let at_once = |records: [Record; 4]| {
        let numbers = [1, 1, 2, 2].into_iter();
        let records: Vec<Record> = numbers
            .zip(records)
            .map(|(number, record)| in_pipeline(number, record))
            .collect();
        records
    };
    assert_not(&at_once(alone(0, 0)));
    let [push, other_length, other_push, length] = alone(0, 0);
    for exactness in [EXACT, CLUSTER] {
        for seen in [(0, 1), (1, 0), (1, 1)] {
            let records = at_once(alone(seen.0, seen.1));
            assert_eq!(check(&records, exactness), Verdict::Linearizable);
        }
        // Not at once, or the reads first.
        assert_eq!(check(&alone(0, 0), exactness), Verdict::Linearizable);
        let reads_first = [&other_length, &push, &length, &other_push].map(Record::clone);
        let verdict = check(&at_once(reads_first), exactness);
        assert_eq!(verdict, Verdict::Linearizable);
    }
}

#[test]
fn what_was_not_answered_holds_up_nothing_after_it_in_its_pipeline() {
    let lost = in_pipeline(1, unanswered(0, Ask::Push(0, Side::Back, vec![7])));
    let reads = |values: &[u32]| in_pipeline(1, read(0, 4, values));
    for values in [&[][..], &[7]] {
        let records = [lost.clone(), reads(values), read(5, 6, &[7])];
        assert_linearizable(&records);
        let never = [lost.clone(), reads(&[]), read(5, 6, &[])];
        assert_linearizable(&never);
    }
    // Commands with replies keep their order around it.
    let first = in_pipeline(1, push(0, 4, 6, 1));
    assert_not(&[first, lost, reads(&[])]);
}

#[test]
fn pushes_of_one_transaction_stay_together() {
    let both = Ask::Push(0, Side::Back, vec![1, 2]);
    let both = record(0, 9, both, Reply::Integer(2));
    assert_not(&[both, push(0, 9, 7, 3), read(10, 11, &[1, 7, 2])]);
}

#[test]
fn a_member_has_the_score_that_it_was_given_last() {
    let add = |at, score, is_new| record(at, at + 1, Ask::Add(1, score), Reply::Integer(is_new));
    let popped = |at, score| {
        let ask = Ask::Pop(vec![SET], Side::Back, 1);
        record(at, at + 1, ask, Reply::Popped(Some(SET), vec![(1, score)]))
    };
    assert_linearizable(&[add(0, 3, 1), add(2, 4, 0), popped(4, 4)]);
    assert_not(&[add(0, 3, 1), add(2, 4, 0), popped(4, 3)]);
    assert_not(&[add(0, 3, 1), add(2, 4, 1)]);
}

/// A history that has an order: commands take effect one after another, each somewhere between its
/// two moments, which are spread at random.
fn history_with_an_order(random: &mut StdRng) -> Vec<Record> {
    let mut keys = Keys {
        prefix: "k".to_owned(),
        next_value: 0,
    };
    let mut state = State::default();
    (0..30)
        .map(|number| {
            let (ask, _) = draw(random, &mut keys);
            let (next, reply) = outcomes(&ask, &state, EXACT).pop().unwrap();
            state = next;
            let effect = 100 * (number + 5);
            let invoked = effect - random.random_range(0..400);
            let ended = effect + random.random_range(1..400);
            if random.random_range(0..12) == 0 {
                unanswered(invoked, ask)
            } else {
                record(invoked, ended, ask, reply)
            }
        })
        .collect()
}

#[test]
fn histories_that_have_an_order_pass() {
    let mut random = StdRng::seed_from_u64(1);
    for _ in 0..50 {
        let mut records = history_with_an_order(&mut random);
        records.sort_by_key(|record| record.invoked);
        for exactness in [EXACT, CLUSTER] {
            assert_eq!(
                check(&records, exactness),
                Verdict::Linearizable,
                "{records:#?}"
            );
        }
    }
}

#[test]
fn a_value_that_is_popped_once_more_never_passes() {
    let mut random = StdRng::seed_from_u64(2);
    let mut found = 0;
    for _ in 0..50 {
        let mut records = history_with_an_order(&mut random);
        // A copied value may be popped once more.
        if format!("{records:?}").contains("Copy") {
            continue;
        }
        let popped = records.iter().find_map(|record| match &record.reply {
            Some(Reply::Popped(Some(key), items)) if *key != SET => Some((*key, items.clone())),
            _ => None,
        });
        let Some((key, items)) = popped else {
            continue;
        };
        // Ten times as late as the others.
        let again = Ask::Take(key, Side::Front, items);
        records.push(record(99_998, 99_999, again, Reply::All(Vec::new())));
        let is_rest_known = records.iter().all(|record| record.ended.is_some());
        let verdict = check(&records, EXACT);
        assert!(
            matches!(verdict, Verdict::NotLinearizable(_)),
            "{is_rest_known}: {verdict:?}"
        );
        found += 1;
    }
    assert!(found > 10, "{found}");
}
