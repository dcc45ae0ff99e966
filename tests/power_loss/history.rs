//! What clients did to a server, and whether a server's later content is consistent with it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::steps::{Own, Payload, Step};
use quoin_resp::wire::reply_reader::show_bytes;

/// The content of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Of each client.
    pub(crate) own: Vec<Own>,
    pub(crate) shared: BTreeSet<Payload>,
}

/// The initial content, and what each client did since then, in order.
#[derive(Clone, Default)]
pub(crate) struct History {
    pub(crate) base: Contents,
    pub(crate) clients: Vec<Vec<Step>>,
}

/// For each client's steps: how many must have survived, and how many may have.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    pub(crate) required: Vec<usize>,
    pub(crate) sent: Vec<usize>,
}

/// Whether a step is in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    There,
    Lost,
    Unknown,
}

impl History {
    pub(crate) fn new(base: Contents) -> Self {
        let clients = base.own.iter().map(|_| Vec::new()).collect();
        Self { base, clients }
    }

    /// The bounds if the machine died when the log was `end` long: steps answered when it was at
    /// most `durable` long must be there.
    pub(crate) fn bounds(&self, durable: u64, end: u64) -> Bounds {
        let count = |is_in: &dyn Fn(&Step) -> bool| {
            let counts = self.clients.iter();
            counts
                .map(|steps| steps.iter().take_while(|step| is_in(step)).count())
                .collect()
        };
        let was_answered = |step: &Step| step.answered.is_some_and(|at| at.position <= durable);
        Bounds {
            required: count(&|step| was_answered(step) || step.is_forgotten),
            sent: count(&|step| step.sent.position <= end),
        }
    }

    /// Checks the content. Returns how many of each client's steps are certainly in it, and how
    /// many may be.
    pub(crate) fn check(
        &self,
        bounds: &Bounds,
        there: &Contents,
    ) -> Result<Vec<Range<usize>>, String> {
        let mut prefixes = Vec::new();
        for client in 0..self.clients.len() {
            let prefix = self.prefix(client, bounds, &there.own[client]);
            prefixes.push(prefix.map_err(|wrong| format!("client {client}: {wrong}"))?);
        }
        self.check_order(&prefixes)?;
        self.check_shared(&prefixes, &there.shared)?;
        Ok(prefixes)
    }

    fn prefix(&self, client: usize, bounds: &Bounds, own: &Own) -> Result<Range<usize>, String> {
        let steps = &self.clients[client];
        let (required, sent) = (bounds.required[client], bounds.sent[client]);
        let after = |count: usize| match count.checked_sub(1) {
            Some(last) => &steps[last].after,
            None => &self.base.own[client],
        };
        let fitting: Vec<usize> = (0..=sent).filter(|count| after(*count) == own).collect();
        let (Some(first), Some(last)) = (fitting.first(), fitting.last()) else {
            let text = format!("its keys hold {own:?}: what none of its {sent} steps left");
            return Err(format!("{text}, of which {required} must be there"));
        };
        if *last < required {
            let text = format!("{required} of its steps must be there, and only {last} are");
            return Err(format!("{text}: its keys hold {own:?}"));
        }
        Ok(*first.max(&required)..*last)
    }

    /// If a step is there, so is everything that was answered before it was sent.
    fn check_order(&self, prefixes: &[Range<usize>]) -> Result<(), String> {
        let of_clients = || self.clients.iter().zip(prefixes).enumerate();
        let lost = of_clients().filter_map(|(client, (steps, prefix))| {
            let answered = steps.get(prefix.end)?.answered?;
            Some((answered.tick, client, prefix.end))
        });
        let Some((tick, client, index)) = lost.min() else {
            return Ok(());
        };
        for (other, (steps, prefix)) in of_clients() {
            let last = prefix.start.checked_sub(1).and_then(|last| steps.get(last));
            if last.is_some_and(|last| last.sent.tick > tick) {
                return Err(format!(
                    "step {index} of client {client} is lost, and step {} of client {other}, \
                     sent after that was answered, is not",
                    prefix.start - 1
                ));
            }
        }
        Ok(())
    }

    fn check_shared(
        &self,
        prefixes: &[Range<usize>],
        there: &BTreeSet<Payload>,
    ) -> Result<(), String> {
        let fate = |client: usize, index: usize, step: &Step| {
            let prefix = &prefixes[client];
            match () {
                () if index >= prefix.end => Fate::Lost,
                () if index >= prefix.start || step.is_forgotten => Fate::Unknown,
                () => Fate::There,
            }
        };
        let base = self.base.shared.iter();
        let mut pushed: BTreeMap<&Payload, Fate> =
            base.map(|payload| (payload, Fate::There)).collect();
        let mut popped: BTreeMap<&Payload, Fate> = BTreeMap::new();
        // How many payloads may have been taken by pops without a reply.
        let mut untold = 0;
        for (client, steps) in self.clients.iter().enumerate() {
            for (index, step) in steps.iter().enumerate() {
                let fate = fate(client, index, step);
                pushed.extend(step.pushed.iter().map(|payload| (payload, fate)));
                for payload in &step.popped {
                    if popped.insert(payload, fate).is_some() {
                        return Err(format!("{} was popped twice", show_bytes(payload)));
                    }
                }
                if step.answered.is_none() && fate != Fate::Lost {
                    untold += step.pops;
                }
            }
        }
        for payload in there {
            let text = show_bytes(payload);
            match (pushed.get(payload), popped.get(payload)) {
                (None, _) => return Err(format!("{text} was never pushed")),
                (Some(Fate::Lost), _) => {
                    return Err(format!("{text} is there, and its push is not"));
                }
                (_, Some(Fate::There)) => return Err(format!("{text} came back")),
                _ => {}
            }
        }
        let mut missing = Vec::new();
        for (payload, fate) in pushed {
            if fate != Fate::There || there.contains(payload) {
                continue;
            }
            match popped.get(payload) {
                None => missing.push(show_bytes(payload)),
                Some(Fate::Lost) => {
                    let text = show_bytes(payload);
                    return Err(format!("{text} is gone, and the pop that took it is too"));
                }
                Some(Fate::There | Fate::Unknown) => {}
            }
        }
        if missing.len() > untold {
            return Err(format!(
                "{} payloads are lost, and pops can have taken {untold}: {missing:?}",
                missing.len()
            ));
        }
        Ok(())
    }

    /// Continues the history with a server that was killed: steps that it has not done will not
    /// happen any more.
    pub(crate) fn go_on(&mut self, prefixes: &[Range<usize>]) {
        for (steps, prefix) in self.clients.iter_mut().zip(prefixes) {
            steps.truncate(prefix.end);
            for step in steps.iter_mut().skip(prefix.start) {
                step.is_forgotten |= step.answered.is_none();
            }
        }
    }
}
