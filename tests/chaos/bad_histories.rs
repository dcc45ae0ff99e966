//! The checks accept correct histories and detect errors.

use crate::conservation;
use crate::history::{Action, Call, Contents, Element, End, Family, Moment, Payload, Queue};
use crate::order;

const FIFO: Queue = queue(Family::Fifo);
const MOVED: Queue = queue(Family::Moved);
const SORTED: Queue = queue(Family::Sorted);
const PRIORITY: Queue = queue(Family::Priority);

const fn queue(family: Family) -> Queue {
    Queue { family, number: 0 }
}

fn element(number: u32, priority: i64) -> Element {
    (Payload { client: 0, number }, priority)
}

/// A call that lasts one moment, from the even moment to the odd one.
fn call(at: Moment, action: Action) -> Call {
    Call {
        invoked: 2 * at,
        ended: Some(2 * at + 1),
        pipeline: at,
        action,
    }
}

fn unanswered(mut call: Call) -> Call {
    call.ended = None;
    call
}

fn push(at: Moment, queue: Queue, elements: &[Element]) -> Call {
    let elements = elements.to_vec();
    call(at, Action::Push { queue, elements })
}

fn pop_of(at: Moment, queue: Queue, asked: usize, took: &[Element]) -> Call {
    let action = Action::Pop {
        queues: vec![queue],
        end: End::First,
        asked,
        from: Some(queue),
        took: took.to_vec(),
    };
    call(at, action)
}

fn pop(at: Moment, queue: Queue, took: &[Element]) -> Call {
    pop_of(at, queue, took.len().max(1), took)
}

fn check(calls: &[Call], remaining: &[(Queue, &[Element])]) -> Result<(), String> {
    let contents: Contents = remaining
        .iter()
        .map(|(queue, elements)| (*queue, elements.to_vec()))
        .collect();
    conservation::check(calls, &contents)?;
    order::check(calls, &contents)
}

#[track_caller]
fn assert_wrong(calls: &[Call], remaining: &[(Queue, &[Element])], why: &str) {
    let wrong = check(calls, remaining).unwrap_err();
    assert!(wrong.contains(why), "{wrong}");
}

#[test]
fn a_good_history_passes() {
    let (a, b, c) = (element(1, 0), element(2, 0), element(3, 0));
    let calls = [
        push(1, FIFO, &[a, b]),
        pop(2, FIFO, &[a]),
        push(3, FIFO, &[c]),
        pop(4, FIFO, &[b]),
    ];
    assert_eq!(check(&calls, &[(FIFO, &[c])]), Ok(()));
}

#[test]
fn a_lost_element_is_found() {
    let (a, b) = (element(1, 0), element(2, 0));
    let calls = [push(1, FIFO, &[a, b]), pop(2, FIFO, &[a])];
    assert_wrong(&calls, &[], "lost");
}

#[test]
fn pops_without_a_reply_explain_only_as_many_as_they_asked_for() {
    let (a, b) = (element(1, 0), element(2, 0));
    let calls = [push(1, FIFO, &[a, b]), unanswered(pop_of(2, FIFO, 2, &[]))];
    assert_eq!(check(&calls, &[]), Ok(()));
    let calls = [push(1, FIFO, &[a, b]), unanswered(pop_of(2, FIFO, 1, &[]))];
    assert_wrong(&calls, &[], "lost");
    let other = Queue { number: 1, ..FIFO };
    let calls = [push(1, FIFO, &[a, b]), unanswered(pop_of(2, other, 2, &[]))];
    assert_wrong(&calls, &[], "lost");
}

#[test]
fn moves_without_a_reply_explain_nothing_that_is_missing() {
    let a = element(1, 0);
    let action = Action::Move {
        from: MOVED,
        took: None,
    };
    let calls = [push(1, MOVED, &[a]), unanswered(call(2, action))];
    assert_eq!(check(&calls, &[(MOVED, &[a])]), Ok(()));
    assert_wrong(&calls, &[], "lost");
}

#[test]
fn a_doubled_element_is_found() {
    let a = element(1, 0);
    let calls = [push(1, FIFO, &[a]), pop(2, FIFO, &[a]), pop(3, FIFO, &[a])];
    assert_wrong(&calls, &[], "already");
    let calls = [push(1, FIFO, &[a]), pop(2, FIFO, &[a])];
    assert_wrong(&calls, &[(FIFO, &[a])], "already");
    assert_wrong(&calls[..1], &[(FIFO, &[a, a])], "already");
}

#[test]
fn a_push_without_a_reply_may_be_there_once_or_not() {
    let a = element(1, 0);
    let calls = [unanswered(push(1, FIFO, &[a]))];
    assert_eq!(check(&calls, &[]), Ok(()));
    assert_eq!(check(&calls, &[(FIFO, &[a])]), Ok(()));
    assert_wrong(&calls, &[(FIFO, &[a, a])], "already");
}

#[test]
fn half_a_push_is_found() {
    let (a, b) = (element(1, 0), element(2, 0));
    let calls = [unanswered(push(1, FIFO, &[a, b]))];
    assert_wrong(&calls, &[(FIFO, &[b])], "lost");
}

#[test]
fn an_element_from_nowhere_is_found() {
    assert_wrong(&[pop(1, FIFO, &[element(1, 0)])], &[], "never pushed");
    let late = push(5, FIFO, &[element(1, 0)]);
    assert_wrong(
        &[pop(1, FIFO, &[element(1, 0)]), late],
        &[],
        "before it was pushed",
    );
}

#[test]
fn an_element_in_a_wrong_queue_is_found() {
    let a = element(1, 0);
    assert_wrong(&[push(1, FIFO, &[a])], &[(SORTED, &[a])], "is there in");
    let changed = element(1, 7);
    assert_wrong(&[push(1, FIFO, &[a])], &[(FIFO, &[changed])], "changed");
}

#[test]
fn reordered_pops_are_found() {
    let (a, b) = (element(1, 0), element(2, 0));
    let calls = |first, second| {
        [
            push(1, FIFO, &[a]),
            push(2, FIFO, &[b]),
            pop(3, FIFO, &[first]),
            pop(4, FIFO, &[second]),
        ]
    };
    assert_eq!(check(&calls(a, b), &[]), Ok(()));
    assert_wrong(&calls(b, a), &[], "popped before");
}

#[test]
fn pops_at_the_same_time_are_in_any_order() {
    let (a, b) = (element(1, 0), element(2, 0));
    let mut early = pop(3, FIFO, &[b]);
    early.ended = Some(99);
    let calls = [
        push(1, FIFO, &[a]),
        push(2, FIFO, &[b]),
        early,
        pop(4, FIFO, &[a]),
    ];
    assert_eq!(check(&calls, &[]), Ok(()));
}

#[test]
fn a_reordered_push_is_found() {
    let (a, b) = (element(1, 0), element(2, 0));
    let one_push = push(1, FIFO, &[a, b]);
    assert_wrong(&[one_push.clone(), pop(2, FIFO, &[b, a])], &[], "behind");
    assert_wrong(
        &[one_push.clone(), pop(2, FIFO, &[b])],
        &[(FIFO, &[a])],
        "stands before",
    );
    assert_wrong(&[one_push], &[(FIFO, &[b, a])], "behind");
}

#[test]
fn a_reordered_pipeline_is_found() {
    let (a, b) = (element(1, 0), element(2, 0));
    let (first, mut second) = (push(1, FIFO, &[a]), push(1, FIFO, &[b]));
    second.invoked = first.invoked;
    let calls = [first, second, pop(2, FIFO, &[b])];
    assert_wrong(&calls, &[(FIFO, &[a])], "stands before");
}

#[test]
fn order_is_demanded_within_a_priority_only() {
    let (a, b) = (element(1, 3), element(2, 3));
    let calls = [
        push(1, PRIORITY, &[a]),
        push(2, PRIORITY, &[b]),
        pop(3, PRIORITY, &[b]),
    ];
    assert_wrong(&calls, &[(PRIORITY, &[a])], "popped before");
    let b = element(2, 1);
    let calls = [
        push(1, PRIORITY, &[a]),
        push(2, PRIORITY, &[b]),
        pop(3, PRIORITY, &[b]),
    ];
    assert_eq!(check(&calls, &[(PRIORITY, &[a])]), Ok(()));
}

#[test]
fn a_lower_score_that_was_there_all_the_time_is_not_overlooked() {
    let (low, high) = (element(1, 1), element(2, 2));
    let calls = [push(1, SORTED, &[low, high]), pop(2, SORTED, &[high])];
    assert_wrong(&calls, &[(SORTED, &[low])], "overlooked");
    let calls = [push(1, SORTED, &[low, high]), pop(2, SORTED, &[high, low])];
    assert_wrong(&calls, &[], "comes behind");
}

#[test]
fn an_empty_reply_while_something_was_there_is_found() {
    let a = element(1, 0);
    let calls = [push(1, FIFO, &[a]), pop(2, FIFO, &[])];
    assert_wrong(&calls, &[(FIFO, &[a])], "overlooked");
    // Too few are as wrong as none.
    let b = element(2, 0);
    let calls = [push(1, FIFO, &[a, b]), pop_of(2, FIFO, 2, &[a])];
    assert_wrong(&calls, &[(FIFO, &[b])], "overlooked");
}
