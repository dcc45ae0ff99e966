//! Reading ahead for scripts: on a cluster each read is a round trip, and a script asks for one row
//! after the other. What the same script has read the last time is read at once before it runs.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;

use super::context::WriteContext;
use crate::store::{Isolation, NotedRead, RangeQuery};

/// Scripts, with their keys, whose reads a server remembers.
const CALLS_MAX: usize = 1_000;
/// Reads of one script that are remembered.
pub const READS_MAX: usize = 256;
/// Rows of a range that are read ahead for other arguments.
const ROWS_MAX: usize = 128;

/// What scripts have read.
#[derive(Debug, Default)]
pub struct ScriptReads(Mutex<HashMap<u64, Remembered>>);

/// What a script with its keys has read.
#[derive(Debug)]
struct Remembered {
    /// Stands for the other arguments of the last run.
    arguments: u64,
    last: Vec<NotedRead>,
    /// What the last run and the one before it have both read.
    repeated: Vec<NotedRead>,
}

impl ScriptReads {
    /// What a script will probably read: after a conflict, all that the failed attempt has read, and
    /// for other arguments what two runs had in common. `call` stands for the script and its keys.
    pub fn expected(&self, call: u64, arguments: u64) -> Vec<NotedRead> {
        match self.all().get(&call) {
            None => Vec::new(),
            Some(known) if known.arguments == arguments => known.last.clone(),
            Some(known) => known.repeated.clone(),
        }
    }

    /// Remembers what a run has read.
    pub fn remember(&self, call: u64, arguments: u64, reads: Vec<NotedRead>) {
        let mut seen = HashSet::new();
        let is_first = |read: &NotedRead| seen.insert(read.clone());
        let last: Vec<NotedRead> = reads.into_iter().filter(is_first).collect();
        let mut all = self.all();
        if all.len() >= CALLS_MAX && !all.contains_key(&call) {
            all.clear();
        }
        let repeated = match all.get(&call) {
            Some(before) => {
                let before: HashSet<&NotedRead> = before.last.iter().collect();
                let is_repeated = |read: &&NotedRead| before.contains(read) && is_small(read);
                last.iter().filter(is_repeated).cloned().collect()
            }
            None => Vec::new(),
        };
        let remembered = Remembered {
            arguments,
            last,
            repeated,
        };
        all.insert(call, remembered);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<u64, Remembered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_small(read: &NotedRead) -> bool {
    match read {
        NotedRead::Key(_) => true,
        NotedRead::Range { limit, .. } => *limit <= ROWS_MAX,
    }
}

impl WriteContext<'_> {
    /// Has the transaction's cache hold these rows. What cannot be read is left to the commands.
    pub async fn read_ahead(&self, reads: &[NotedRead]) {
        let read = async |read: &NotedRead| match read {
            NotedRead::Key(key) => {
                let _ = self.transaction.get(key, Isolation::Snapshot).await;
            }
            NotedRead::Range {
                begin,
                end,
                limit,
                reverse,
            } => {
                let query = RangeQuery {
                    begin,
                    end,
                    limit: *limit,
                    reverse: *reverse,
                    isolation: Isolation::Snapshot,
                };
                let _ = self.transaction.get_range(query).await;
            }
        };
        join_all(reads.iter().map(read)).await;
    }
}
