//! Rows under the root prefix that no part of the layout knows.

use crate::doctor::report::{Finding, Level, Line, Outcome, shown};
use crate::doctor::target::{DoctorTarget, PAGE_ROWS, rows};
use quoin_base::size::counted;
use quoin_layout::{Space, successor};
use quoin_store::{Isolation, ReadTransaction, StoreError, Transaction};

pub(super) async fn check(
    target: &DoctorTarget<'_>,
    name: &'static str,
) -> Result<Line, StoreError> {
    let layout = &target.layout;
    let everything = layout.everything();
    let mut begin = everything.begin.clone();
    let mut known = 0_u64;
    let mut unknown = Finding::default();
    // Bounded, should everything there be something else's.
    for _ in 0..PAGE_ROWS {
        let first = target
            .read(async |transaction: &dyn ReadTransaction| {
                rows(transaction, &begin, &everything.end, 1, Isolation::Snapshot).await
            })
            .await?;
        let Some(row) = first.into_iter().next() else {
            break;
        };
        begin = match layout.read_space(&row.key) {
            Ok(number) => {
                match Space::from_number(number) {
                    Some(_) => known += 1,
                    None => unknown.add(|| format!("space {number}")),
                }
                layout.space(number).end
            }
            Err(_) => {
                unknown.add(|| shown(&row.key));
                successor(&row.key)
            }
        };
    }
    let scratch = scratch(target).await?;
    let mut outcome = Outcome::new(format!(
        "{} in use",
        counted(known, "kind of row is", "kinds of rows are")
    ));
    outcome.finding(
        Level::Warn,
        &unknown,
        [
            "kind that this Quoin does not know",
            "kinds that this Quoin does not know",
        ],
        "a newer Quoin's, or something else's under the same root prefix: they are left alone",
    );
    outcome.finding(
        Level::Warn,
        &scratch,
        [
            "row of a doctor that was stopped while it measured",
            "rows of a doctor that was stopped while it measured",
        ],
        "--repair removes them",
    );
    Ok(outcome.line(name))
}

/// What other doctors have left. (One that measures just now finds its row gone, and writes it
/// again.)
async fn scratch(target: &DoctorTarget<'_>) -> Result<Finding, StoreError> {
    let range = target.layout.rows_of(Space::Scratch);
    let found = target
        .read(async |transaction: &dyn ReadTransaction| {
            let limit = PAGE_ROWS;
            rows(
                transaction,
                &range.begin,
                &range.end,
                limit,
                Isolation::Snapshot,
            )
            .await
        })
        .await?;
    let mut finding = Finding::default();
    for row in found {
        finding.add(|| shown(&row.key));
        let is_repaired = target
            .repair(async |transaction: &dyn Transaction| {
                transaction.clear(&row.key);
                Ok(true)
            })
            .await?;
        if is_repaired {
            finding.count_repaired();
        }
    }
    Ok(finding)
}
