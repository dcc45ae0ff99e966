//! `quoin queues`: the table, once.

use std::io::{self, Write};

use quoin_client::{Client, ClientError};
use quoin_queues::{Bounds, Wanted, find};

use super::rows::{Column, Order, Row, activity_of, gather, now_ms};

/// Names to examine, and queues to check, at once.
const BOUNDS: Bounds = Bounds {
    names_at_once: 500,
    names_max: 500,
    queues_max: 500,
};

/// The queues that are printed.
pub(super) struct Listed {
    rows: Vec<Row>,
    /// The total number of queues.
    total: usize,
    now_ms: i64,
}

/// Checks all matching queues, step by step, and keeps those that come first, up to the limit.
pub(super) fn list(
    client: &mut Client,
    database: u32,
    wanted: &Wanted,
    order: Order,
    limit: usize,
) -> Result<Listed, ClientError> {
    let now_ms = now_ms(client)?;
    let mut active = activity_of(client, database, wanted)?;
    let mut rows = Vec::new();
    let mut total = 0;
    let mut cursor = Some("0".to_owned());
    while let Some(at) = cursor {
        let names = find(client, wanted, &at, BOUNDS)?;
        cursor = names.next;
        let found = gather(client, names.keys, &active)?;
        total += found.len();
        for row in &found {
            active.remove(&row.queue.name);
        }
        rows.extend(found);
        // Queues that will not be printed need not be kept.
        if rows.len() > limit.saturating_mul(2).max(BOUNDS.names_max) {
            order.sort(&mut rows);
            rows.truncate(limit);
        }
    }
    // Queues that are empty at present have no keys. Those that are not busy may have been deleted.
    let empty = active.values().filter(|activity| activity.is_busy());
    let empty = empty.map(|activity| (activity.name.clone(), activity.kind));
    let found = gather(client, empty.collect(), &active)?;
    total += found.len();
    rows.extend(found);
    order.sort(&mut rows);
    rows.truncate(limit);
    Ok(Listed {
        rows,
        total,
        now_ms,
    })
}

impl Listed {
    /// Writes a table, or an object of JSON a line.
    pub(super) fn write(&self, is_json: bool, out: &mut impl Write) -> io::Result<()> {
        if is_json {
            for row in &self.rows {
                writeln!(out, "{}", row.json(self.now_ms))?;
            }
            return Ok(());
        }
        let cells: Vec<Vec<String>> = self.rows.iter().map(|row| self.cells(row)).collect();
        let titles: Vec<String> = Column::ALL.map(|column| column.title().to_owned()).into();
        let lines: Vec<&Vec<String>> = std::iter::once(&titles).chain(&cells).collect();
        let widths = (0..titles.len()).map(|place| {
            let cells = lines.iter().filter_map(|line| line.get(place));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        });
        let widths: Vec<usize> = widths.collect();
        for line in lines {
            let columns = Column::ALL.iter().zip(&widths);
            let mut text = String::new();
            for (cell, (column, &width)) in line.iter().zip(columns) {
                text.push_str(&match column.is_text() {
                    true => format!("{cell:<width$}  "),
                    false => format!("{cell:>width$}  "),
                });
            }
            if let Some(note) = line.get(widths.len()) {
                text.push_str(note);
            }
            writeln!(out, "{}", text.trim_end())?;
        }
        Ok(())
    }

    /// The cells of a line. The last one has no title.
    fn cells(&self, row: &Row) -> Vec<String> {
        let cells = Column::ALL.map(|column| row.cell(column, self.now_ms));
        cells.into_iter().chain([row.note()]).collect()
    }

    /// What is not printed, in words.
    pub(super) fn rest(&self) -> Option<String> {
        let rest = self.total.saturating_sub(self.rows.len());
        (rest > 0).then(|| {
            format!(
                "{} of {} queues; --limit shows more",
                self.rows.len(),
                self.total
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::testing::{ActiveServer, activity, row};
    use super::*;
    use quoin_queues::{Activity, Groups, Kind};

    #[test]
    fn the_table_has_aligned_columns_and_blanks() {
        let mut rows = vec![
            row("jobs", Kind::List, 12_345),
            row("t", Kind::TaskQueue, 1),
        ];
        rows[0].activity = Some(activity("jobs", Kind::List));
        rows[1].queue.figures.in_work = Some(2);
        rows[1].queue.figures.delayed = Some(3);
        rows[1].queue.figures.dead = Some(4);
        rows[1].queue.figures.is_paused = true;
        rows[1].since_ms = Some(0);
        let mut stream = row("s", Kind::Stream, 0);
        stream.queue.figures.groups = Some(Groups { count: 2, lag: 9 });
        rows.push(stream);
        let listed = Listed {
            rows,
            total: 4,
            now_ms: 5_000,
        };
        let mut out = Vec::new();
        listed.write(false, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\
QUEUE  TYPE        READY  LEASED  DELAYED  DEAD  IN/S   OUT/S  AGE  WAITING  RETRIES  DEATHS
jobs   list       12.3 k                          2.5  12.3 k             4        7       3
t      taskqueue       1       2        3     4                5 s                            paused
s      stream          0                                                                      2 groups, lag 9
"
        );
        assert_eq!(
            listed.rest().as_deref(),
            Some("3 of 4 queues; --limit shows more")
        );
    }

    #[test]
    fn queues_that_are_active_but_empty_are_listed_too() {
        let server = ActiveServer {
            lists: 1_700,
            active: vec![
                activity("empty", Kind::List),
                activity("list:3", Kind::List),
                activity("tasks", Kind::TaskQueue),
                Activity {
                    in_per_second: 0.01,
                    out_per_second: 0.0,
                    waiting: 0,
                    ..activity("gone", Kind::List)
                },
            ],
        };
        let mut client = server.start();
        let order = Order {
            column: Column::In,
            is_reversed: false,
        };
        let wanted = Wanted {
            kind: Some(Kind::List),
            pattern: Vec::new(),
        };
        let listed = list(&mut client, 0, &wanted, order, 3).unwrap();
        let names: Vec<_> = listed
            .rows
            .iter()
            .map(|row| row.queue.name.as_slice())
            .collect();
        assert_eq!(names, [&b"empty"[..], b"list:3", b"list:0"]);
        assert_eq!((listed.total, listed.now_ms), (1_701, 100_000));
        // Queues of another database do not belong to this table.
        let listed = list(&mut client, 1, &wanted, order, 3).unwrap();
        assert!(listed.rows.iter().all(|row| row.activity.is_none()));
    }
}
