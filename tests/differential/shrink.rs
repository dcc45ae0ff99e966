//! Shortens a failing history.

use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::keys::Step;
use crate::servers::{Batch, PROTOCOLS, Servers, show};

const DURATION: Duration = Duration::from_secs(30);
/// Number of last batches to show if the commands fail only in their pipelines.
const BATCHES_SHOWN: usize = 3;

/// One command and its connection.
#[derive(Clone)]
struct Single<'h> {
    connection: usize,
    step: &'h Step,
}

/// A short history that still fails, as text.
pub fn shrink(servers: &mut Servers, history: &[Batch], failed_at: usize) -> String {
    let batches = &history[..=failed_at];
    let singles: Vec<Single<'_>> = batches
        .iter()
        .flat_map(|batch| {
            batch.steps.iter().map(|step| Single {
                connection: batch.connection,
                step,
            })
        })
        .collect();
    let Some(mut singles) = failing_part(servers, &singles) else {
        let mut text = "it fails only in its pipelines; the last:\n".to_owned();
        for batch in batches.iter().rev().take(BATCHES_SHOWN).rev() {
            for step in &batch.steps {
                line(&mut text, batch.connection, step);
            }
            text.push('\n');
        }
        return text;
    };
    let deadline = Instant::now() + DURATION;
    let mut chunk = singles.len().div_ceil(2);
    while chunk > 0 && Instant::now() < deadline {
        let mut at = 0;
        let mut is_shorter = false;
        while at < singles.len() && Instant::now() < deadline {
            let mut fewer = singles.clone();
            fewer.drain(at..(at + chunk).min(singles.len()));
            match failing_part(servers, &fewer) {
                Some(shorter) => {
                    singles = shorter;
                    is_shorter = true;
                }
                None => at += chunk,
            }
        }
        if !is_shorter || chunk > 1 {
            chunk /= 2;
        }
    }
    let mut text = "shrunk, each command by itself:\n".to_owned();
    for single in &singles {
        line(&mut text, single.connection, single.step);
    }
    text
}

fn line(text: &mut String, connection: usize, step: &Step) {
    let words = match step {
        Step::Command(words) => show(words),
        Step::Iteration(words, _) => format!("{} (whole iteration)", show(words)),
    };
    let _ = writeln!(text, "  RESP{} {words}", PROTOCOLS[connection]);
}

/// The commands up to the first one that fails when run from the start. `None` if none does.
fn failing_part<'h>(servers: &mut Servers, singles: &[Single<'h>]) -> Option<Vec<Single<'h>>> {
    servers.reset();
    for (at, single) in singles.iter().enumerate() {
        let batch = Batch {
            connection: single.connection,
            steps: vec![single.step.clone()],
        };
        if servers.compare(&batch).is_some() {
            return Some(singles[..=at].to_vec());
        }
    }
    servers.compare_contents().map(|_| singles.to_vec())
}
