//! A search for a linearization, after Wing and Gong, with Lowe's memory of what was tried.
//!
//! J. M. Wing, C. Gong: Testing and Verifying Concurrent Objects (1993). G. Lowe: Testing for
//! Linearizability (2017). Existing crates require every operation to end with one outcome. Here
//! results may be unknown, and some operations may go several ways.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, RandomState};

use crate::history::Moment;

/// Maximum number of operations in a history. They are counted by the bits of a set.
pub const OPERATIONS_MAX: usize = 128;

/// An operation on an object in a state.
pub trait Operation {
    type State: Clone + Eq + Hash;

    /// Before it was asked for.
    fn invoked(&self) -> Moment;

    /// When its result was known; `None`: it may take effect at any later moment, or never.
    fn ended(&self) -> Option<Moment>;

    /// The operation of the same history that takes effect earlier.
    fn behind(&self) -> Option<usize>;

    /// Records what the operation can see of a state while it is in progress.
    fn observe(&self, state: &mut Self::State);

    /// The states that the operation can lead to with its result. Empty if it could not have had
    /// that result.
    fn successors(&self, state: &Self::State) -> Vec<Self::State>;
}

/// The result of a search.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Some order explains all results.
    Linearizable,
    /// No order does. Contains the operations of the longest attempt, in order.
    NotLinearizable(Vec<usize>),
    /// Undecided within the bound.
    Undecided,
}

/// Searches an order of the operations, trying at most `tries_max` configurations.
pub fn check<O: Operation>(operations: &[O], initial: O::State, tries_max: usize) -> Verdict {
    assert!(operations.len() <= OPERATIONS_MAX);
    let mut search = Search {
        operations,
        seen: HashSet::new(),
        hasher: RandomState::new(),
        order: Vec::new(),
        longest: Vec::new(),
        tries_left: tries_max,
    };
    match search.go_on(0, &initial) {
        Some(true) => Verdict::Linearizable,
        Some(false) => Verdict::NotLinearizable(search.longest),
        None => Verdict::Undecided,
    }
}

struct Search<'h, O: Operation> {
    operations: &'h [O],
    /// Sets of operations that have taken effect, with the resulting state (a hash of it, to save
    /// memory), from which no linearization was found.
    seen: HashSet<(u128, u64)>,
    hasher: RandomState,
    order: Vec<usize>,
    longest: Vec<usize>,
    tries_left: usize,
}

impl<O: Operation> Search<'_, O> {
    /// Whether the operations that are not in the set can be ordered. `None` if that took too long.
    fn go_on(&mut self, done: u128, state: &O::State) -> Option<bool> {
        let operations = self.operations;
        let is_done = |index: usize| done & (1 << index) != 0;
        let waiting = || (0..operations.len()).filter(|index| !is_done(*index));
        // Whatever was asked for later than this cannot be next.
        let Some(first_end) = waiting()
            .filter_map(|index| operations[index].ended())
            .min()
        else {
            return Some(true);
        };
        let is_under_way = |index: &usize| {
            let operation = &operations[*index];
            operation.invoked() <= first_end && operation.behind().is_none_or(is_done)
        };
        // Operations that end first are the likeliest to be next.
        let mut next: Vec<usize> = waiting().filter(is_under_way).collect();
        next.sort_by_key(|index| operations[*index].ended().unwrap_or(Moment::MAX));
        let mut state = state.clone();
        for index in &next {
            operations[*index].observe(&mut state);
        }
        if !self.seen.insert((done, self.hasher.hash_one(&state))) {
            return Some(false);
        }
        self.tries_left = self.tries_left.checked_sub(1)?;
        for index in next {
            let operation = &operations[index];
            for successor in operation.successors(&state) {
                // An operation without a result that changes nothing can be left out.
                if operation.ended().is_none() && successor == state {
                    continue;
                }
                self.order.push(index);
                if self.order.len() > self.longest.len() {
                    self.longest.clone_from(&self.order);
                }
                if self.go_on(done | (1 << index), &successor)? {
                    return Some(true);
                }
                self.order.pop();
            }
        }
        Some(false)
    }
}
