//! The rows by which servers learn what became of a commit of unknown result.

use crate::doctor::report::{Finding, Level, Line, Outcome, shown};
use crate::doctor::target::DoctorTarget;
use quoin_base::size::counted;
use quoin_layout::Space;
use quoin_store::{StoreError, Transaction};

/// Every start of a server on a cluster leaves as many as it had batches under way at once, and
/// nobody removes them: whether that server still runs, perhaps stopped amid a commit, cannot be
/// known from outside. They are small. Where no server runs, they may go.
pub(super) async fn check(
    target: &DoctorTarget<'_>,
    name: &'static str,
) -> Result<Line, StoreError> {
    let range = target.layout.rows_of(Space::Operations);
    let mut count = 0_u64;
    let (mut starts, mut last_instance) = (0_u64, None);
    let mut unreadable = Finding::default();
    target
        .each_row(&range, |row| {
            count += 1;
            match target.layout.read_operation_key(&row.key) {
                Ok(instance) if last_instance == Some(instance) => {}
                Ok(instance) => {
                    starts += 1;
                    last_instance = Some(instance);
                }
                Err(_) => unreadable.add(|| shown(&row.key)),
            }
        })
        .await?;
    if count == 0 {
        return Ok(Line::ok(name, "none"));
    }
    let mut outcome = Outcome::new(format!(
        "{} of {}",
        counted(count, "small row", "small rows"),
        counted(starts, "server start", "server starts")
    ));
    if target.is_offline {
        let is_repaired = target
            .repair(async |transaction: &dyn Transaction| {
                transaction.clear_range(&range.begin, &range.end);
                Ok(true)
            })
            .await?;
        if is_repaired {
            outcome.note(Level::Ok, "removed");
        }
    } else if target.repairs {
        outcome.note(
            Level::Ok,
            "kept: a running server may need its own (--offline removes them)",
        );
    }
    outcome.finding(
        Level::Warn,
        &unreadable,
        ["row that cannot be read", "rows that cannot be read"],
        "with all servers stopped, --repair --offline removes them",
    );
    Ok(outcome.line(name))
}
