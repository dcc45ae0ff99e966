//! Reading ahead for scripts. On a cluster each read is a round trip, and a script reads one row after the other. So
//! the rows that the same script read last time are read together before it starts.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use quoin_store::NotedRead;

/// Most scripts (with their keys) whose reads a server remembers.
const CALLS_MAX: usize = 1_000;
/// Most reads that are remembered for one script.
pub const READS_MAX: usize = 256;
/// Longest range to read ahead for other arguments, in rows.
const ROWS_MAX: usize = 128;

/// What scripts have read.
#[derive(Debug, Default)]
pub struct ScriptReads(Mutex<HashMap<u64, Remembered>>);

/// What a script with given keys has read.
#[derive(Debug)]
struct Remembered {
    /// Hash of the other arguments of the last call.
    arguments: u64,
    last: Vec<NotedRead>,
    /// Reads that the last two calls have in common.
    repeated: Vec<NotedRead>,
}

impl ScriptReads {
    /// The expected reads of a script: after a conflict, everything that the failed attempt read; for other arguments,
    /// what two calls had in common. `call` is a hash of the script and its keys.
    pub fn expected(&self, call: u64, arguments: u64) -> Vec<NotedRead> {
        match self.all().get(&call) {
            None => Vec::new(),
            Some(known) if known.arguments == arguments => known.last.clone(),
            Some(known) => known.repeated.clone(),
        }
    }

    /// Remembers what a call has read.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> NotedRead {
        NotedRead::Key(name.as_bytes().to_vec())
    }

    fn range(limit: usize) -> NotedRead {
        NotedRead::Range {
            begin: b"a".to_vec(),
            end: b"b".to_vec(),
            limit,
            reverse: true,
        }
    }

    #[test]
    fn other_arguments_read_what_two_runs_had_in_common() {
        let reads = ScriptReads::default();
        assert!(reads.expected(1, 1).is_empty());
        reads.remember(1, 1, vec![key("meta"), key("job 1"), key("meta"), range(1)]);
        let all = [key("meta"), key("job 1"), range(1)];
        assert_eq!(reads.expected(1, 1), all);
        assert!(reads.expected(1, 2).is_empty());
        assert!(reads.expected(2, 1).is_empty());
        reads.remember(1, 2, vec![key("job 2"), key("meta"), range(1)]);
        assert_eq!(reads.expected(1, 3), [key("meta"), range(1)]);
        assert_eq!(reads.expected(1, 2).len(), 3);
    }

    #[test]
    fn long_ranges_are_read_again_after_a_conflict_only() {
        let reads = ScriptReads::default();
        for arguments in [1, 2] {
            reads.remember(1, arguments, vec![range(ROWS_MAX + 1)]);
        }
        assert_eq!(reads.expected(1, 2).len(), 1);
        assert!(reads.expected(1, 3).is_empty());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let reads = ScriptReads::default();
        for call in 0..10_000 {
            reads.remember(call, 0, vec![key("k")]);
        }
        assert!(reads.all().len() <= CALLS_MAX);
    }
}
