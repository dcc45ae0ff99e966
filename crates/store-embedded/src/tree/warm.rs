//! Bringing rows into the processor's cache before they are searched.
//!
//! Each step of a search waits for memory, and the next step depends on it. The steps of several searches do not
//! depend on each other, so the processor can wait for all of them at once.

use quoin_store::SoonRead;
use triomphe::Arc;

use super::node::{Child, Children, Node};
use super::{Tree, with_node};

/// What one cache line holds, in bytes.
#[cfg(target_arch = "x86_64")]
const LINE_BYTES: usize = 64;
/// Lines of a node that hold its prefix and, in a small one, the bytes of its children.
const NODE_LINES: usize = 1;
/// Lines of a row that hold its header, its key and the beginning of its value.
const ROW_LINES: usize = 3;

/// A search in progress.
struct Search<'t, 'k> {
    at: &'t Child,
    /// The rest of the key.
    rest: &'k [u8],
    /// Where to continue after the end of the key.
    beyond: Beyond,
}

#[derive(Clone, Copy)]
enum Beyond {
    Nowhere,
    First,
    Last,
}

impl Tree {
    /// Follows several keys at once, down to their rows.
    pub(in super::super) fn warm(&self, soon: &[SoonRead]) {
        let mut searches: Vec<Search<'_, '_>> = soon
            .iter()
            .map(|one| {
                let (rest, beyond) = match one {
                    SoonRead::Row(key) => (key.as_slice(), Beyond::Nowhere),
                    SoonRead::First(prefix) => (prefix.as_slice(), Beyond::First),
                    SoonRead::Last(prefix) => (prefix.as_slice(), Beyond::Last),
                };
                Search {
                    at: &self.root,
                    rest,
                    beyond,
                }
            })
            .collect();
        while !searches.is_empty() {
            // What one pass fetches, the next one uses.
            searches.retain_mut(Search::step);
            for search in &searches {
                fetch_child(search.at);
            }
        }
    }
}

impl Search<'_, '_> {
    /// Moves to the next node or row. Returns false at the end.
    fn step(&mut self) -> bool {
        let next = with_node!(self.at, node => next(node, &mut self.rest, self.beyond), else None);
        let Some(next) = next else {
            return false;
        };
        self.at = next;
        // In a large node, this is not in the node's first cache line.
        fetch(std::ptr::from_ref(next), 1);
        true
    }
}

fn next<'t, C: Children>(node: &'t Node<C>, rest: &mut &[u8], beyond: Beyond) -> Option<&'t Child> {
    if let Some(after) = node.prefix.strip(rest) {
        if let Some((byte, after)) = after.split_first() {
            *rest = after;
            return node.children.get(*byte);
        }
        if let Some(row) = &node.here {
            fetch(row.address(), ROW_LINES);
        }
    }
    let is_at_end = node.prefix.starts_with(rest);
    *rest = &[];
    let found = match beyond {
        Beyond::First if is_at_end => node.children.at_or_after(0),
        Beyond::Last if is_at_end => node.children.at_or_before(u8::MAX),
        _ => None,
    };
    found.map(|(_, child)| child)
}

fn fetch_child(child: &Child) {
    match child {
        Child::Empty => {}
        Child::Row(row) => fetch(row.address(), ROW_LINES),
        Child::Of4(node) => fetch(Arc::as_ptr(node), NODE_LINES + 1),
        Child::Of16(node) => fetch(Arc::as_ptr(node), NODE_LINES),
        Child::Of48(node) => fetch(Arc::as_ptr(node), NODE_LINES),
        Child::Of256(node) => fetch(Arc::as_ptr(node), NODE_LINES),
    }
}

/// Begins to fetch some cache lines, without waiting for them.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn fetch<T>(from: *const T, lines: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

    for line in 0..lines {
        let at = from.cast::<i8>().wrapping_add(line * LINE_BYTES);
        // SAFETY: a prefetch reads nothing, and any address may be given.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at) };
    }
}

/// Does nothing, because the compiler does not support prefetching on this processor yet.
#[cfg(not(target_arch = "x86_64"))]
fn fetch<T>(_from: *const T, _lines: usize) {}
