//! How long elements have been in a queue, from looks at its ends: rows hold no time.
//!
//! Elements of a [`QueueSpan`] keep the order in which they came. An element was there at an earlier look
//! if its place lies between the ends of then. So the oldest element is as old as the first look since
//! which some place has lain between the ends at every look. That does not depend on which end is pushed
//! to and which is popped from. It is a lower bound: what came between two looks counts from the later
//! one, and what was there before the first look counts from that.

use std::collections::BTreeMap;

use bytes::Bytes;

use quoin_data::cluster::queue_spans::QueueSpan;
use quoin_data::keyspace::key_figures::KeyFigures;

/// Looks that are remembered of a part of a queue. Beyond it, neighbours that are closest in time become
/// one, which costs about a thirtieth of the age in precision.
const LOOKS_MAX: usize = 64;
/// Parts of one key that are remembered: a priority that is first or last only at times keeps its age.
const PARTS_MAX: usize = 8;

/// What was seen of the parts of one key's queue.
#[derive(Debug, Default)]
pub(super) struct Ages {
    parts: BTreeMap<Bytes, Part>,
}

/// What was seen of one part.
#[derive(Debug, Default)]
struct Part {
    /// Oldest first. There is a place that lies between the ends in all of them.
    looks: Vec<Look>,
    first_digest: Option<u64>,
    seen_ms: i64,
}

/// The ends at one time. One that stands for several holds the stretch that lay between the ends in all.
#[derive(Debug)]
struct Look {
    at_ms: i64,
    first: Bytes,
    last: Bytes,
}

impl Ages {
    /// Takes in what a look at a key has found, and says in it since when the oldest elements are there.
    pub(super) fn date(&mut self, figures: &mut KeyFigures, now_ms: i64) {
        let spans = figures.states.iter().flat_map(|state| &state.spans);
        let ids = || spans.clone().map(|span| &span.id);
        match (ids().min(), ids().max()) {
            // What lies beyond the first and the last part is empty.
            (Some(first), Some(last)) => self.parts.retain(|id, _| (first..=last).contains(&id)),
            _ => self.parts.clear(),
        }
        for state in &mut figures.states {
            let dated = state
                .spans
                .iter()
                .map(|span| self.part(&span.id).look(span, now_ms));
            state.since_ms = state.since_ms.or(dated.min());
        }
        while self.parts.len() > PARTS_MAX {
            let longest_unseen = self.parts.iter().min_by_key(|(_, part)| part.seen_ms);
            let Some(id) = longest_unseen.map(|(id, _)| id.clone()) else {
                return;
            };
            self.parts.remove(&id);
        }
    }

    fn part(&mut self, id: &Bytes) -> &mut Part {
        self.parts.entry(id.clone()).or_default()
    }
}

impl Part {
    /// Adds a look. Since when the oldest element is there.
    fn look(&mut self, span: &QueueSpan, now_ms: i64) -> i64 {
        if self.has_begun_again(span) {
            self.looks.clear();
        }
        self.first_digest = span.first_digest;
        self.seen_ms = now_ms;
        let is_new = |last: &Look| last.first != span.first || last.last != span.last;
        if self.looks.last().is_none_or(is_new) {
            self.looks.push(Look {
                at_ms: now_ms,
                first: span.first.clone(),
                last: span.last.clone(),
            });
        }
        self.forget_useless();
        if self.looks.len() > LOOKS_MAX {
            self.merge_closest();
        }
        self.looks.first().map_or(now_ms, |look| look.at_ms)
    }

    /// Whether the part was empty meanwhile and its places have begun again.
    fn has_begun_again(&self, span: &QueueSpan) -> bool {
        let (Some(digest), Some(last)) = (span.first_digest, self.looks.last()) else {
            return false;
        };
        span.first < last.first || span.first == last.first && Some(digest) != self.first_digest
    }

    /// Forgets looks whose elements are all gone.
    fn forget_useless(&mut self) {
        let Some(newest) = self.looks.last() else {
            return;
        };
        let (mut first, mut last) = (newest.first.clone(), newest.last.clone());
        let is_useful = |look: &&Look| {
            first = look.first.clone().max(first.clone());
            last = look.last.clone().min(last.clone());
            first <= last
        };
        let useful = self.looks.iter().rev().take_while(is_useful).count();
        self.looks.drain(..self.looks.len() - useful);
    }

    /// Makes one look of the two that are closest in time, except the newest.
    fn merge_closest(&mut self) {
        let spans = self.looks.windows(3).enumerate();
        let closest = spans.min_by_key(|(_, looks)| match looks {
            [one, _, next] => next.at_ms.saturating_sub(one.at_ms),
            _ => i64::MAX,
        });
        let Some((at, _)) = closest else {
            return;
        };
        let gone = self.looks.remove(at + 1);
        if let Some(kept) = self.looks.get_mut(at) {
            kept.first = gone.first.max(std::mem::take(&mut kept.first));
            kept.last = gone.last.min(std::mem::take(&mut kept.last));
        }
    }
}

#[cfg(test)]
mod tests;
