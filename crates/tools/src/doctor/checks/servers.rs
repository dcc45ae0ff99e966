//! Checks the rows of servers that share a store (docs/understand/decisions/040-servers.md).

use crate::doctor::report::{Finding, Level, Line, Outcome};
use crate::doctor::target::DoctorTarget;
use quoin_base::limits::SERVER_DEAD_AFTER;
use quoin_base::size::counted;
use quoin_data::cluster::roster::{RosterRows, read_rows, remove_if_silent};
use quoin_layout::ServerRow;
use quoin_store::{ReadTransaction, StoreError, Transaction};

/// Reads the rows twice, like a server: one whose beat does not change is dead. Other servers
/// remove its row after a minute.
pub(super) async fn check(
    target: &DoctorTarget<'_>,
    name: &'static str,
) -> Result<Line, StoreError> {
    let first = read(target).await?;
    if first == RosterRows::default() {
        return Ok(Line::ok(name, "none shares the store"));
    }
    tokio::time::sleep(target.message_grace.min(SERVER_DEAD_AFTER)).await;
    let rows = read(target).await?;
    let mut live = Vec::new();
    let mut dead = Finding::default();
    for server in &rows.servers {
        let (instance, row) = server;
        if !first.servers.contains(server) {
            live.push(describe(row));
            continue;
        }
        dead.add(|| describe(row));
        let is_repaired = target
            .repair(async |transaction: &dyn Transaction| {
                remove_if_silent(transaction, &target.layout, *instance, row).await?;
                Ok(true)
            })
            .await?;
        if is_repaired {
            dead.count_repaired();
        }
    }
    let mut outcome = Outcome::new(match live.as_slice() {
        [] => "none is alive".to_owned(),
        live => format!(
            "{}: {}",
            counted(live.len() as u64, "is alive", "are alive"),
            live.join(", ")
        ),
    });
    if !rows.choices.is_empty() {
        let count = counted(rows.choices.len() as u64, "name has", "names have");
        outcome.note(Level::Ok, format!("{count} a chosen server"));
    }
    outcome.finding(
        Level::Warn,
        &dead,
        ["shows no sign of life", "show no sign of life"],
        "killed, or cut off from the store; servers remove the row after a minute, or --repair does",
    );
    if rows.unreadable > 0 {
        let count = counted(rows.unreadable as u64, "row is", "rows are");
        outcome.note(
            Level::Warn,
            format!("{count} from a newer Quoin, or damaged: left alone"),
        );
    }
    Ok(outcome.line(name))
}

async fn read(target: &DoctorTarget<'_>) -> Result<RosterRows, StoreError> {
    target
        .read(async |transaction: &dyn ReadTransaction| {
            read_rows(transaction, &target.layout).await
        })
        .await
}

fn describe(row: &ServerRow) -> String {
    let port = if row.port == 0 {
        row.tls_port
    } else {
        row.port
    };
    format!("{}:{port} ({})", row.ip, row.version)
}
