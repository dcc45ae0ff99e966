//! What `quoin top` knows about the queues: a table that each refresh updates with a bounded number
//! of names.
//!
//! A sweep examines all names, some in each refresh. At its end it forgets queues that are gone.
//! Queues on the screen and active ones are checked in each refresh.

use std::collections::HashMap;

use quoin_base::limits::{TOP_NAMES_MAX, TOP_QUEUES_MAX};
use quoin_client::{Client, ClientError};
use quoin_queues::{Activity, Bounds, Kind, Wanted, find};

use crate::queues::rows::{ActivityOf, Order, Row, activity_of, gather, now_ms};

/// Limits of one refresh.
const BOUNDS: Bounds = Bounds {
    names_at_once: 500,
    names_max: TOP_NAMES_MAX,
    queues_max: TOP_NAMES_MAX,
};
/// Number of queues checked together.
const QUEUES_AT_ONCE: usize = 500;

/// What to find out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) wanted: Wanted,
    /// If there are too many queues, those that come first in this order are kept.
    pub(super) order: Order,
    /// The queues on the screen.
    pub(super) visible: Vec<(Vec<u8>, Kind)>,
    /// Whether the table should not change.
    pub(super) is_held: bool,
}

/// The state after a refresh.
#[derive(Debug, Clone, Default)]
pub(super) struct Snapshot {
    pub(super) wanted: Wanted,
    pub(super) rows: Vec<Row>,
    /// The server's time.
    pub(super) now_ms: i64,
    /// Whether all names have been examined.
    pub(super) is_complete: bool,
    /// Names that the sweep has examined, about.
    pub(super) examined: usize,
    /// Whether there are more queues than are kept.
    pub(super) is_cut: bool,
    /// Why there is no news.
    pub(super) error: Option<String>,
}

/// A queue, and the sweep that has seen it last.
struct Known {
    row: Row,
    sweep: u64,
}

/// The table.
#[derive(Default)]
pub(super) struct Table {
    wanted: Wanted,
    known: HashMap<Vec<u8>, Known>,
    /// Where the sweep continues. `None` at its beginning.
    cursor: Option<String>,
    sweep: u64,
    examined: usize,
    is_complete: bool,
    is_cut: bool,
    /// Whether this sweep has cut it.
    has_cut: bool,
    now_ms: i64,
}

impl Table {
    /// Asks the server for what is wanted.
    pub(super) fn refresh(
        &mut self,
        client: &mut Client,
        database: u32,
        wish: &Wish,
    ) -> Result<Snapshot, ClientError> {
        if wish.wanted != self.wanted {
            *self = Self {
                wanted: wish.wanted.clone(),
                ..Self::default()
            };
        }
        self.now_ms = now_ms(client)?;
        let active = activity_of(client, database, &self.wanted)?;
        let at = self.cursor.take();
        let names = find(client, &self.wanted, at.as_deref().unwrap_or("0"), BOUNDS)?;
        self.examined += names.examined;
        self.read(client, names.keys, &active)?;
        // Checking a queue on the screen does not show that it still exists. Sweeps find that out.
        let is_wanted = |(name, _): &&(Vec<u8>, Kind)| {
            let is_busy = active.get(name).is_some_and(Activity::is_busy);
            self.known.contains_key(name) && !is_busy
        };
        let visible: Vec<_> = wish.visible.iter().filter(is_wanted).cloned().collect();
        for row in gather(client, visible, &active)? {
            if let Some(known) = self.known.get_mut(&row.queue.name) {
                known.row = row;
            }
        }
        // A busy queue may be empty at present, so that no sweep finds it.
        let busy = active.values().filter(|activity| activity.is_busy());
        let busy = busy.map(|activity| (activity.name.clone(), activity.kind));
        self.read(client, busy.collect(), &active)?;
        self.trim(wish.order);
        self.cursor = names.next;
        if self.cursor.is_none() {
            self.end_sweep();
        }
        Ok(self.snapshot())
    }

    fn read(
        &mut self,
        client: &mut Client,
        keys: Vec<(Vec<u8>, Kind)>,
        active: &ActivityOf,
    ) -> Result<(), ClientError> {
        for keys in keys.chunks(QUEUES_AT_ONCE) {
            for row in gather(client, keys.to_vec(), active)? {
                self.note(row);
            }
        }
        Ok(())
    }

    fn note(&mut self, row: Row) {
        let name = row.queue.name.clone();
        let sweep = self.sweep;
        self.known.insert(name, Known { row, sweep });
    }

    /// Forgets the last queues if there are too many, except busy ones, which are few.
    fn trim(&mut self, order: Order) {
        if self.known.len() <= TOP_QUEUES_MAX {
            return;
        }
        let mut rows: Vec<Row> = self.known.values().map(|known| known.row.clone()).collect();
        order.sort(&mut rows);
        for row in rows.iter().skip(TOP_QUEUES_MAX) {
            if !row.activity.as_ref().is_some_and(Activity::is_busy) {
                self.known.remove(&row.queue.name);
            }
        }
        self.is_cut = true;
        self.has_cut = true;
    }

    /// Forgets queues that this sweep has not seen, and begins the next one.
    fn end_sweep(&mut self) {
        let sweep = self.sweep;
        self.known.retain(|_, known| known.sweep == sweep);
        self.sweep += 1;
        self.examined = 0;
        self.is_complete = true;
        self.is_cut = std::mem::take(&mut self.has_cut);
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            wanted: self.wanted.clone(),
            rows: self.known.values().map(|known| known.row.clone()).collect(),
            now_ms: self.now_ms,
            is_complete: self.is_complete,
            examined: self.examined,
            is_cut: self.is_cut,
            error: None,
        }
    }

    /// The same as before, because of an error.
    pub(super) fn failed(&self, error: &ClientError) -> Snapshot {
        Snapshot {
            error: Some(error.to_string()),
            ..self.snapshot()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queues::rows::testing::{ActiveServer, activity, row};

    #[test]
    fn queues_that_are_gone_are_forgotten_at_the_end_of_a_sweep() {
        let mut table = Table::default();
        table.note(row("a", Kind::List, 1));
        table.note(row("b", Kind::List, 1));
        table.end_sweep();
        assert_eq!(table.snapshot().rows.len(), 2);
        table.note(row("b", Kind::List, 5));
        assert_eq!(table.snapshot().rows.len(), 2);
        table.end_sweep();
        let rows = table.snapshot().rows;
        assert_eq!(rows, [row("b", Kind::List, 5)]);
        assert!(table.snapshot().is_complete);
    }

    #[test]
    fn the_first_queues_are_kept_and_busy_ones() {
        let mut table = Table::default();
        for number in 0..=TOP_QUEUES_MAX {
            table.note(row(&number.to_string(), Kind::List, number as i64 + 1));
        }
        let mut busy = row("busy", Kind::List, 0);
        busy.activity = Some(activity("busy", Kind::List));
        table.note(busy);
        table.trim(Order::default());
        assert_eq!(table.known.len(), TOP_QUEUES_MAX + 1);
        assert!(table.known.contains_key(b"busy".as_slice()));
        assert!(!table.known.contains_key(b"0".as_slice()));
        assert!(table.snapshot().is_cut);
        table.end_sweep();
        assert!(table.snapshot().is_cut);
        table.end_sweep();
        assert!(!table.snapshot().is_cut);
    }

    #[test]
    fn a_refresh_examines_a_bounded_number_of_names_and_active_queues() {
        let server = ActiveServer {
            lists: 12_345,
            active: vec![
                activity("idle:empty", Kind::List),
                activity("list:7", Kind::List),
            ],
        };
        let mut client = server.start();
        let mut table = Table::default();
        let wish = Wish::default();
        let mut refresh = || table.refresh(&mut client, 0, &wish).unwrap();
        let first = refresh();
        assert!(!first.is_complete);
        assert_eq!((first.examined, first.rows.len()), (5_000, 5_001));
        let second = refresh();
        assert_eq!((second.examined, second.rows.len()), (10_000, 10_000));
        assert!(second.is_cut);
        let third = refresh();
        assert!(third.is_complete && third.is_cut);
        let active = third.rows.iter().filter(|row| row.activity.is_some());
        let mut names: Vec<_> = active.map(|row| row.queue.name.clone()).collect();
        names.sort();
        assert_eq!(names, [b"idle:empty".to_vec(), b"list:7".to_vec()]);
    }

    #[test]
    fn a_queue_on_the_screen_is_forgotten_too() {
        let mut client = ActiveServer {
            lists: 1,
            active: Vec::new(),
        }
        .start();
        let mut table = Table::default();
        table.note(row("gone", Kind::List, 5));
        table.sweep = 1;
        let wish = Wish {
            visible: vec![(b"gone".to_vec(), Kind::List)],
            ..Wish::default()
        };
        let rows = table.refresh(&mut client, 0, &wish).unwrap().rows;
        assert_eq!(rows, [row("list:0", Kind::List, 1)]);
    }

    #[test]
    fn another_filter_begins_from_the_start() {
        let server = ActiveServer {
            lists: 6_000,
            active: vec![
                activity("list:7", Kind::List),
                activity("other", Kind::List),
            ],
        };
        let mut client = server.start();
        let mut table = Table::default();
        table.refresh(&mut client, 0, &Wish::default()).unwrap();
        let wish = Wish {
            wanted: Wanted {
                kind: None,
                pattern: b"list:*".to_vec(),
            },
            ..Wish::default()
        };
        let found = table.refresh(&mut client, 0, &wish).unwrap();
        assert_eq!((found.examined, found.rows.len()), (5_000, 5_000));
        assert!(found.rows.iter().all(|row| row.queue.name != b"other"));
    }
}
