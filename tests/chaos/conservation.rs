//! Pushed elements equal popped plus remaining ones: nothing is lost, duplicated or invented.

use std::collections::BTreeMap;

use crate::history::{Action, Call, Contents, Element, FAMILIES, Family, Moment, Payload, Queue};

/// A payload's push.
struct Pushed {
    queue: Queue,
    priority: i64,
    invoked: Moment,
    /// Whether the push took effect: it got a reply, or another element of it was seen.
    is_certain: bool,
    /// The index of its push.
    call: usize,
    is_seen: bool,
}

/// Checks the calls of all clients against the final content of the queues.
pub fn check(calls: &[Call], contents: &Contents) -> Result<(), String> {
    let mut pushed = pushes(calls)?;
    for call in calls {
        match &call.action {
            Action::Pop { took, from, .. } => {
                for element in took {
                    see(&mut pushed, element, *from, call.ended, "popped")?;
                }
            }
            Action::Move {
                took: Some(payload),
                from,
            } => {
                let push = pushed.get(payload);
                let is_right = push.is_some_and(|push| push.queue.family == from.family);
                if !is_right {
                    return Err(format!("{payload} was moved and never pushed"));
                }
            }
            Action::Move { took: None, .. } | Action::Push { .. } => {}
        }
    }
    for (queue, elements) in contents {
        for element in elements {
            see(&mut pushed, element, Some(*queue), None, "there")?;
        }
    }
    make_pushes_whole(&mut pushed);
    FAMILIES
        .into_iter()
        .try_for_each(|family| check_missing(family, calls, &pushed))
}

fn pushes(calls: &[Call]) -> Result<BTreeMap<Payload, Pushed>, String> {
    let mut pushed = BTreeMap::new();
    for (number, call) in calls.iter().enumerate() {
        let Action::Push { queue, elements } = &call.action else {
            continue;
        };
        for (payload, priority) in elements {
            let push = Pushed {
                queue: *queue,
                priority: *priority,
                invoked: call.invoked,
                is_certain: call.ended.is_some(),
                call: number,
                is_seen: false,
            };
            if pushed.insert(*payload, push).is_some() {
                return Err(format!("{payload} was pushed twice by the test itself"));
            }
        }
    }
    Ok(pushed)
}

fn see(
    pushed: &mut BTreeMap<Payload, Pushed>,
    (payload, priority): &Element,
    queue: Option<Queue>,
    ended: Option<Moment>,
    how: &str,
) -> Result<(), String> {
    let Some(push) = pushed.get_mut(payload) else {
        return Err(format!("{payload} is {how} and was never pushed"));
    };
    if push.is_seen {
        return Err(format!(
            "{payload} is {how}, and was popped or is there already"
        ));
    }
    push.is_seen = true;
    if push.priority != *priority {
        let before = push.priority;
        return Err(format!(
            "{payload} has changed its priority from {before} to {priority}"
        ));
    }
    if ended.is_some_and(|ended| ended < push.invoked) {
        return Err(format!("{payload} was popped before it was pushed"));
    }
    let moves = matches!(
        push.queue.family,
        Family::Mixed | Family::Moved | Family::PriorityMoved
    );
    let is_right = queue
        .is_some_and(|queue| queue == push.queue || (moves && queue.family == push.queue.family));
    if is_right {
        Ok(())
    } else {
        Err(format!("{payload} of {} is {how} in {queue:?}", push.queue))
    }
}

/// A push is atomic: if one of its elements was seen, the others existed too.
fn make_pushes_whole(pushed: &mut BTreeMap<Payload, Pushed>) {
    let seen: std::collections::BTreeSet<usize> = pushed
        .values()
        .filter(|push| push.is_seen)
        .map(|push| push.call)
        .collect();
    for push in pushed.values_mut() {
        push.is_certain |= seen.contains(&push.call);
    }
}

/// Every missing element must have been taken by a pop of unknown result. For each set of queues
/// there must be enough such pops (Hall's condition, which is also sufficient).
fn check_missing(
    family: Family,
    calls: &[Call],
    pushed: &BTreeMap<Payload, Pushed>,
) -> Result<(), String> {
    let queues: Vec<Queue> = Queue::all_of(family).collect();
    let is_shared = family == Family::Mixed;
    for subset in 1..1_usize << queues.len() {
        let chosen: Vec<Queue> = (0..queues.len())
            .filter(|bit| subset & (1 << bit) != 0)
            .map(|bit| queues[bit])
            .collect();
        // Elements that move may have been anywhere.
        if is_shared && chosen.len() < queues.len() {
            continue;
        }
        let missing: Vec<&Payload> = pushed
            .iter()
            .filter(|(_, push)| push.is_certain && !push.is_seen && chosen.contains(&push.queue))
            .map(|(payload, _)| payload)
            .collect();
        let may_miss = unknown_pops(calls, &chosen);
        if missing.len() > may_miss {
            return Err(format!(
                "{} elements of {chosen:?} are lost where pops of unknown result can have taken \
                 {may_miss}: {missing:?}",
                missing.len()
            ));
        }
    }
    Ok(())
}

fn unknown_pops(calls: &[Call], chosen: &[Queue]) -> usize {
    let counts = calls.iter().map(|call| match &call.action {
        Action::Pop { queues, asked, .. }
            if call.ended.is_none() && queues.iter().any(|queue| chosen.contains(queue)) =>
        {
            *asked
        }
        _ => 0,
    });
    counts.sum()
}
