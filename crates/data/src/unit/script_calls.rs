//! Commands that scripts call, for INFO and MONITOR.

use std::cell::RefCell;
use std::time::Duration;

use bytes::Bytes;

use crate::unit::rights::RefusedCall;

/// Calls of scripts that an attempt keeps until it is committed. Later ones are told at once, and
/// again if the attempt is repeated.
const CALLS_KEPT_MAX: usize = 1_000;

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallResult {
    /// It replied.
    Done,
    /// It replied with an error.
    Failed,
    /// It was refused before it ran.
    Rejected,
}

/// A command that a script has called.
#[derive(Debug, Clone)]
pub struct ScriptCall {
    /// Its place in the command table; `None` if there is no such command.
    pub command_id: Option<usize>,
    /// How long it took.
    pub duration: Duration,
    /// What became of it.
    pub result: CallResult,
    /// The code of its error, if it is to be counted. One that the script ends with is counted as
    /// the script's.
    pub error: Option<Box<str>>,
    /// Its database and arguments, if somebody wants to see them.
    pub shown: Option<(u32, Vec<Bytes>)>,
    /// Why the script's client may not call it, if so, and the client's number.
    pub refused: Option<Box<(u64, RefusedCall)>>,
}

/// Who counts and shows the commands that scripts call: this server.
pub trait ScriptCalls: Send + Sync {
    /// Whether anybody wants to see them.
    fn are_shown(&self) -> bool;

    /// A script has called this.
    fn tell(&self, call: &ScriptCall);
}

/// The calls of an attempt at a batch.
#[derive(Debug, Default)]
pub struct CallsMade(RefCell<Vec<ScriptCall>>);

impl CallsMade {
    /// Keeps calls until they are taken. Returns those that are too many.
    pub fn keep(&self, calls: Vec<ScriptCall>) -> Vec<ScriptCall> {
        let mut kept = self.0.borrow_mut();
        let room = CALLS_KEPT_MAX.saturating_sub(kept.len());
        let mut calls = calls.into_iter();
        kept.extend(calls.by_ref().take(room));
        calls.collect()
    }

    /// The calls so far.
    pub fn take(&self) -> Vec<ScriptCall> {
        std::mem::take(&mut *self.0.borrow_mut())
    }
}
