//! Published messages that were on their way to other servers, and that nobody has cleared.

use crate::doctor::report::{Level, Line, Outcome};
use crate::doctor::target::{DoctorTarget, rows};
use quoin_base::size::counted;
use quoin_layout::successor;
use quoin_store::{Isolation, ReadTransaction, StoreError, Transaction};

/// A server that publishes or listens clears what has been there for some seconds. One that is
/// killed does not, and the messages stay until another starts, publishes or listens.
pub(super) async fn check(
    target: &DoctorTarget<'_>,
    name: &'static str,
) -> Result<Line, StoreError> {
    let (count, last) = count(target).await?;
    let Some(last) = last else {
        return Ok(Line::ok(name, "none is on its way to other servers"));
    };
    tokio::time::sleep(target.message_grace).await;
    let range = target.layout.messages();
    let is_there = target
        .read(async |transaction: &dyn ReadTransaction| {
            let end = successor(&last);
            let rows = rows(transaction, &range.begin, &end, 1, Isolation::Snapshot).await?;
            Ok(!rows.is_empty())
        })
        .await?;
    let mut outcome = Outcome::new(format!(
        "{} on their way to other servers",
        counted(count, "row", "rows")
    ));
    if is_there {
        // As a server would: all servers have read them long since.
        let is_repaired = target
            .repair(async |transaction: &dyn Transaction| {
                transaction.clear_range(&range.begin, &successor(&last));
                Ok(true)
            })
            .await?;
        if is_repaired {
            outcome.note(Level::Ok, "cleared");
        } else {
            outcome.note(
                Level::Warn,
                "which no server has cleared in time: left by one that was killed; the next that \
                 starts or publishes clears them, or --repair does",
            );
        }
    }
    Ok(outcome.line(name))
}

async fn count(target: &DoctorTarget<'_>) -> Result<(u64, Option<bytes::Bytes>), StoreError> {
    let mut count = 0;
    let mut last = None;
    target
        .each_row(&target.layout.messages(), |row| {
            count += 1;
            last = Some(row.key.clone());
        })
        .await?;
    Ok((count, last))
}
