//! Elements come in order, and no pop misses an element that was there all the time.
//!
//! All of this follows from linearizability. Unlike a search for a linearization, it is fast on
//! long histories. It checks only what must hold whatever happened to commands without a reply.
//!
//! *Order*: if an element was pushed before another element's push began, it is not popped after
//! the other's pop has ended. This holds in lists, and in priority queues among values of one
//! priority. *Presence*: an element whose push had ended before a pop began, and whose own pop
//! began after that pop had ended, was there all along. So that pop may not say that there are no
//! more elements, or take one that comes after it.

use std::collections::{BTreeMap, HashMap};

use crate::history::{Action, Call, Contents, Element, End, Family, Moment, Payload, Queue};

const NEVER: Moment = Moment::MAX;

/// The life of an element that was pushed.
#[derive(Clone, Copy)]
struct Life {
    queue: Queue,
    priority: i64,
    push_invoked: Moment,
    /// `NEVER` if the push got no reply.
    push_ended: Moment,
    /// Its index among the pushes of its pipeline.
    index: usize,
    /// `NEVER` if it remains.
    pipeline: u64,
    /// Whether it was popped by a pop with a reply, or remains. Nothing else is known about other
    /// elements.
    pop_invoked: Moment,
    pop_ended: Moment,
    /// It was popped by a pop with a reply, or remains: nothing else is known of the others.
    is_accounted: bool,
}

impl Life {
    /// For people, in milliseconds.
    fn told(&self) -> String {
        let [pushed, ended, popped, gone] = [
            self.push_invoked,
            self.push_ended,
            self.pop_invoked,
            self.pop_ended,
        ]
        .map(|moment| moment / 1_000_000);
        format!("pushed {pushed}..{ended}, popped {popped}..{gone} (the largest is never)")
    }

    /// Whether its push was over before the other's began, or comes before it in the same pipeline.
    fn is_before(&self, other: &Self) -> bool {
        self.push_ended < other.push_invoked
            || (self.pipeline == other.pipeline && self.index < other.index)
    }
}

/// Checks the families in which elements stay in their queue.
///
/// # Errors
/// What is wrong.
pub fn check(calls: &[Call], contents: &Contents) -> Result<(), String> {
    let lives = &lives(calls, contents);
    for lives in by_pipeline(lives).values() {
        check_one_pipeline(lives)?;
    }
    let mut queues: BTreeMap<Queue, Vec<(Payload, Life)>> = BTreeMap::new();
    for (payload, life) in lives {
        queues
            .entry(life.queue)
            .or_default()
            .push((*payload, *life));
    }
    let mut presences = HashMap::new();
    for (queue, members) in &queues {
        let mut priorities: BTreeMap<i64, Vec<(Payload, Life)>> = BTreeMap::new();
        for member in members {
            priorities
                .entry(member.1.priority)
                .or_default()
                .push(*member);
        }
        for (priority, members) in &priorities {
            if queue.family != Family::Sorted {
                check_first_in_first_out(members)?;
            }
            presences.insert((*queue, *priority), Presence::of(members));
        }
    }
    for call in calls {
        check_pop(call, lives, &presences)?;
    }
    for (queue, elements) in contents {
        if is_checked(queue.family) {
            check_sequence(*queue, End::First, elements, lives)?;
        }
    }
    Ok(())
}

fn is_checked(family: Family) -> bool {
    matches!(family, Family::Fifo | Family::Sorted | Family::Priority)
}

fn lives(calls: &[Call], contents: &Contents) -> BTreeMap<Payload, Life> {
    let mut lives = BTreeMap::new();
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for call in calls {
        let Action::Push { queue, elements } = &call.action else {
            continue;
        };
        if !is_checked(queue.family) {
            continue;
        }
        for (payload, priority) in elements {
            let count = counts.entry(call.pipeline).or_default();
            *count += 1;
            let life = Life {
                queue: *queue,
                priority: *priority,
                push_invoked: call.invoked,
                push_ended: call.ended.unwrap_or(NEVER),
                index: *count,
                pipeline: call.pipeline,
                pop_invoked: NEVER,
                pop_ended: NEVER,
                is_accounted: false,
            };
            lives.insert(*payload, life);
        }
    }
    for call in calls {
        let (Action::Pop { took, .. }, Some(ended)) = (&call.action, call.ended) else {
            continue;
        };
        for (payload, _) in took {
            if let Some(life) = lives.get_mut(payload) {
                life.pop_invoked = call.invoked;
                life.pop_ended = ended;
                life.is_accounted = true;
            }
        }
    }
    for (payload, _) in contents.values().flatten() {
        if let Some(life) = lives.get_mut(payload) {
            life.is_accounted = true;
        }
    }
    lives
}

fn by_pipeline(lives: &BTreeMap<Payload, Life>) -> BTreeMap<(Queue, u64), Vec<(Payload, Life)>> {
    let mut pushes: BTreeMap<(Queue, u64), Vec<(Payload, Life)>> = BTreeMap::new();
    for (payload, life) in lives {
        if life.queue.family != Family::Sorted {
            let key = (life.queue, life.pipeline);
            pushes.entry(key).or_default().push((*payload, *life));
        }
    }
    pushes
}

fn check_one_pipeline(members: &[(Payload, Life)]) -> Result<(), String> {
    for (first, one) in members {
        for (second, other) in members {
            let is_order = one.index < other.index && one.priority == other.priority;
            if is_order && one.is_accounted && one.pop_invoked > other.pop_ended {
                let wrong = format!(
                    "{second} was popped before {first}, which stands before it in one pipeline"
                );
                return Err(wrong);
            }
        }
    }
    Ok(())
}

fn check_first_in_first_out(members: &[(Payload, Life)]) -> Result<(), String> {
    let presence = Presence::of(members);
    for (payload, life) in members {
        // Is there an element that was pushed before this one's push began, and popped after its
        // pop had ended?
        if let Some(overtaken) = presence.longest(life.push_invoked)
            && overtaken.1 > life.pop_ended
        {
            let wrong = format!(
                "{}: {payload} was popped before {}, which had been pushed before it",
                life.queue, overtaken.0
            );
            return Err(wrong);
        }
    }
    Ok(())
}

/// When each element of one queue and priority was present.
struct Presence {
    /// By the end of the push: the time, and the element up to here whose pop began last.
    starts: Vec<(Moment, (Payload, Moment))>,
}

impl Presence {
    fn of(members: &[(Payload, Life)]) -> Self {
        let known = members.iter().filter(|(_, life)| life.is_accounted);
        let mut known: Vec<_> = known.collect();
        known.sort_by_key(|(_, life)| life.push_ended);
        let mut starts: Vec<(Moment, (Payload, Moment))> = Vec::with_capacity(known.len());
        for (payload, life) in known {
            let mut longest = (*payload, life.pop_invoked);
            if let Some((_, before)) = starts.last()
                && before.1 > longest.1
            {
                longest = *before;
            }
            starts.push((life.push_ended, longest));
        }
        Self { starts }
    }

    /// Among elements whose push had ended before that moment, the one whose pop began last, and
    /// when.
    fn longest(&self, before: Moment) -> Option<(Payload, Moment)> {
        let count = self.starts.partition_point(|(start, _)| *start < before);
        Some(self.starts[count.checked_sub(1)?].1)
    }
}

fn check_pop(
    call: &Call,
    lives: &BTreeMap<Payload, Life>,
    presences: &HashMap<(Queue, i64), Presence>,
) -> Result<(), String> {
    let (
        Action::Pop {
            queues,
            end,
            asked,
            from,
            took,
        },
        Some(ended),
    ) = (&call.action, call.ended)
    else {
        return Ok(());
    };
    if queues.iter().any(|queue| !is_checked(queue.family)) {
        return Ok(());
    }
    for queue in queues {
        let is_source = Some(*queue) == *from;
        // An element before the last one that was taken, or any element.
        let last = took.last().map(|element| element.1);
        for ((_, priority), presence) in presences.iter().filter(|((other, _), _)| other == queue) {
            let is_due = match (is_source, last, end) {
                (true, Some(last), End::First) if took.len() == *asked => *priority < last,
                (true, Some(last), End::Last) if took.len() == *asked => *priority > last,
                _ => true,
            };
            if let Some((payload, popped)) = presence.longest(call.invoked)
                && is_due
                && popped > ended
            {
                let wrong = format!(
                    "{queue}: {payload} (of {priority}), {}, was there all the time, and was \
                     overlooked by {call:?}",
                    lives.get(&payload).map_or_else(String::new, Life::told),
                );
                return Err(wrong);
            }
        }
        if is_source {
            check_sequence(*queue, *end, took, lives)?;
            break;
        }
    }
    Ok(())
}

/// Checks elements that were popped together, or remained.
fn check_sequence(
    queue: Queue,
    end: End,
    elements: &[Element],
    lives: &BTreeMap<Payload, Life>,
) -> Result<(), String> {
    for pair in elements.windows(2) {
        let [(first, one), (second, other)] = pair else {
            continue;
        };
        let is_sorted = match end {
            End::First => one <= other,
            End::Last => one >= other,
        };
        if !is_sorted {
            let wrong = format!("{queue}: {second} (of {other}) comes behind {first} (of {one})");
            return Err(wrong);
        }
    }
    if queue.family == Family::Sorted {
        return Ok(());
    }
    // By priority: no element may belong before one that came earlier. With pushes sorted by their
    // beginnings, it is enough to check the latest so far, and the last one within a pipeline.
    let mut latest: HashMap<i64, Life> = HashMap::new();
    let mut last_of_pipeline: HashMap<(u64, i64), Life> = HashMap::new();
    for (payload, priority) in elements {
        let Some(life) = lives.get(payload).filter(|life| life.is_accounted) else {
            continue;
        };
        let overtaken = [
            latest.get(priority),
            last_of_pipeline.get(&(life.pipeline, *priority)),
        ];
        if overtaken
            .into_iter()
            .flatten()
            .any(|other| life.is_before(other))
        {
            let wrong = format!("{queue}: {payload} comes behind what was pushed after it");
            return Err(wrong);
        }
        last_of_pipeline.insert((life.pipeline, *priority), *life);
        let entry = latest.entry(*priority).or_insert(*life);
        if life.push_invoked > entry.push_invoked {
            *entry = *life;
        }
    }
    Ok(())
}
