//! What traces show about tasks with a TRACEPARENT.

use std::sync::{Arc, Mutex};

use quoin_data::unit::spans::{
    EndedSpans, SpanReceiver, TaskPart, TaskPartEnd, TaskSpan, TraceParent,
};
use quoin_engine::testing::START_MS;

use super::*;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// The spans of a server.
#[derive(Default)]
struct Seen(Mutex<Vec<TaskSpan>>);

impl SpanReceiver for Seen {
    fn receive(&self, ended: EndedSpans) {
        assert_eq!(ended.left_out, 0);
        self.0.lock().unwrap().extend(ended.spans);
    }
}

impl Seen {
    fn take(&self) -> Vec<TaskSpan> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    /// Parts, times since the start, and ends.
    fn parts(&self) -> Vec<(TaskPart, i64, Option<i64>, TaskPartEnd)> {
        let spans = self.take().into_iter();
        spans
            .map(|span| {
                let (start_ms, end_ms) = (span.start_ms, span.end_ms);
                let end_ms = end_ms.map(|end_ms| end_ms - START_MS);
                (span.part, start_ms - START_MS, end_ms, span.end)
            })
            .collect()
    }
}

fn on_both_shown(test: impl Fn(&Bench, &Seen)) {
    for bench in [Bench::embedded(), Bench::cluster_like()] {
        let seen = Arc::<Seen>::default();
        let receiver = Arc::clone(&seen) as Arc<dyn SpanReceiver>;
        let bench = bench.served_with(|environment| environment.span_receiver = Some(receiver));
        test(&bench, &seen);
    }
}

fn add(bench: &Bench, id: &str, options: &str) {
    let line = format!("TASK.ADD q 1 x ID {id} TRACEPARENT {PARENT} {options}");
    assert_eq!(bench.run(&line), bulk(id));
}

fn failed(kind: &'static str, reason: Option<&str>, is_last: bool) -> TaskPartEnd {
    TaskPartEnd::Failed {
        kind,
        reason: reason.map(str::to_owned),
        is_last,
    }
}

#[test]
fn addition_wait_and_run_are_parts_of_the_producers_trace() {
    on_both_shown(|bench, seen| {
        add(bench, "a", "");
        bench.clock.advance_ms(100);
        bench.run("TASK.TAKE q LEASE 1000 WORKER w");
        bench.clock.advance_ms(50);
        bench.run("TASK.EXTEND q a 5000");
        bench.clock.advance_ms(25);
        bench.run("TASK.ACK q a");
        let spans = seen.take();
        let expected = TaskSpan {
            parent: TraceParent {
                trace: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
                span: 0x00f0_67aa_0ba9_02b7,
            },
            id: spans[2].id,
            part: TaskPart::Run,
            database: 0,
            queue: "q".into(),
            task: "a".into(),
            worker: Some("w".into()),
            tries: 1,
            start_ms: START_MS + 100,
            end_ms: Some(START_MS + 175),
            end: TaskPartEnd::Done,
        };
        let wait = TaskSpan {
            id: spans[1].id,
            part: TaskPart::Wait,
            start_ms: START_MS,
            end_ms: Some(START_MS + 100),
            ..expected.clone()
        };
        let addition = TaskSpan {
            id: spans[0].id,
            part: TaskPart::Add,
            worker: None,
            tries: 0,
            start_ms: START_MS,
            end_ms: None,
            ..expected.clone()
        };
        assert_eq!(spans, [addition, wait, expected]);
        assert!(spans[0].id != spans[1].id && spans[1].id != spans[2].id);
    });
}

#[test]
fn a_task_that_is_given_back_waits_again_until_it_is_dead() {
    on_both_shown(|bench, seen| {
        add(bench, "a", "MAXTRIES 2");
        bench.run("TASK.TAKE q LEASE 1000");
        bench.clock.advance_ms(10);
        bench.run("TASK.NACK q a REASON broken");
        bench.clock.advance_ms(5);
        bench.run("TASK.TAKE q LEASE 1000");
        bench.clock.advance_ms(1);
        bench.run("TASK.NACK q a");
        let done = TaskPartEnd::Done;
        assert_eq!(
            seen.parts()[1..],
            [
                (TaskPart::Wait, 0, Some(0), done.clone()),
                (
                    TaskPart::Run,
                    0,
                    Some(10),
                    failed("nack", Some("broken"), false)
                ),
                (TaskPart::Wait, 10, Some(15), done),
                (TaskPart::Run, 15, Some(16), failed("nack", None, true)),
            ]
        );
    });
}

#[test]
fn a_lease_that_nobody_ends_is_a_run_that_failed() {
    on_both_shown(|bench, seen| {
        add(bench, "a", "MAXTRIES 1");
        bench.run("TASK.TAKE q LEASE 100");
        seen.take();
        bench.clock.advance_ms(5_000);
        reap(bench);
        let run = (
            TaskPart::Run,
            0,
            Some(5_000),
            failed("lease_expired", None, true),
        );
        assert_eq!(seen.parts(), [run]);
    });
}

#[test]
fn a_task_that_is_removed_while_it_is_leased_is_cancelled() {
    on_both_shown(|bench, seen| {
        for id in ["a", "b"] {
            add(bench, id, "");
        }
        bench.run("TASK.TAKE q COUNT 2 LEASE 1000");
        seen.take();
        bench.run("TASK.CANCEL q a");
        bench.run("TASK.PURGE q LEASED");
        let run = (TaskPart::Run, 0, Some(0), TaskPartEnd::Cancelled);
        assert_eq!(seen.parts(), [run.clone(), run]);
    });
}

#[test]
fn a_delay_is_no_wait() {
    on_both_shown(|bench, seen| {
        add(bench, "a", "DELAY 1000");
        bench.clock.advance_ms(1_000);
        bench.run("TASK.PEEK q");
        reap(bench);
        bench.clock.advance_ms(7);
        bench.run("TASK.TAKE q");
        let wait = (TaskPart::Wait, 1_000, Some(1_007), TaskPartEnd::Done);
        assert_eq!(seen.parts()[1..], [wait]);
    });
}

#[test]
fn a_task_that_nobody_takes_in_time_is_a_wait_that_failed() {
    on_both_shown(|bench, seen| {
        add(bench, "a", "TTL 100");
        bench.clock.advance_ms(150);
        bench.run("TASK.TAKE q LEASE 1000");
        let wait = (TaskPart::Wait, 0, Some(150), failed("expired", None, true));
        assert_eq!(seen.parts()[1..], [wait]);
    });
}

#[test]
fn a_trace_that_is_not_recorded_shows_nothing() {
    on_both_shown(|bench, seen| {
        let unsampled = PARENT.replace("-01", "-00");
        bench.run(&format!("TASK.ADD q 1 x ID a TRACEPARENT {unsampled}"));
        bench.run("TASK.ADD q 1 x ID b");
        bench.run("TASK.TAKE q COUNT 2 LEASE 1000");
        for id in ["a", "b"] {
            bench.run(&format!("TASK.ACK q {id}"));
        }
        assert_eq!(seen.take(), []);
    });
}

#[test]
fn what_is_undone_shows_nothing() {
    on_both_shown(|bench, seen| {
        let script = format!(
            "#!lua flags=atomic\nredis.call('TASK.ADD', 'q', 1, 'x', 'TRACEPARENT', '{PARENT}')\nerror('no')"
        );
        let undone = bench.run_words(&[b"EVAL", script.as_bytes(), b"0"]);
        assert!(matches!(undone, Reply::Error(_)), "{undone:?}");
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
        assert_eq!(seen.take(), []);
        add(bench, "a", "");
        assert_eq!(seen.take().len(), 1);
    });
}

#[test]
fn a_server_that_sends_no_traces_ends_what_another_has_noted() {
    on_both_shown(|bench, seen| {
        add(bench, "a", "");
        bench.run("TASK.TAKE q LEASE 1000");
        seen.take();
        let other = bench.another_server();
        let nack = vec![quoin_engine::testing::planned("TASK.NACK q a")];
        bench.block_on(other.submit(nack)).unwrap();
        bench.clock.advance_ms(9);
        bench.run("TASK.TAKE q LEASE 1000");
        bench.clock.advance_ms(1);
        bench.run("TASK.ACK q a");
        let done = TaskPartEnd::Done;
        assert_eq!(
            seen.parts(),
            [
                (TaskPart::Wait, 0, Some(9), done.clone()),
                (TaskPart::Run, 9, Some(10), done),
            ]
        );
    });
}

#[test]
fn long_names_are_cut() {
    on_both_shown(|bench, seen| {
        let long = "ä".repeat(200);
        let name = long.as_bytes();
        let parent = PARENT.as_bytes();
        bench.run_words(&[b"TASK.ADD", name, b"1", b"x", b"TRACEPARENT", parent]);
        assert_eq!(seen.take()[0].queue, "ä".repeat(128));
    });
}
