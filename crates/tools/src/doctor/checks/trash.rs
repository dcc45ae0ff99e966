//! What deleted keys and flushed databases have left for the background work of servers.

use crate::doctor::report::{Finding, Level, Line, Outcome, shown};
use crate::doctor::target::DoctorTarget;
use quoin_base::size::counted;
use quoin_store::StoreError;

pub(super) async fn check(
    target: &DoctorTarget<'_>,
    name: &'static str,
) -> Result<Line, StoreError> {
    let mut count = 0_u64;
    let mut unreadable = Finding::default();
    target
        .each_row(&target.layout.trash(), |row| {
            count += 1;
            if target.layout.read_trash_key(&row.key).is_err() {
                unreadable.add(|| shown(&row.key));
            }
        })
        .await?;
    let mut outcome = Outcome::new(match count {
        0 => "nothing is left to be cleared".to_owned(),
        _ => format!(
            "{}: a running server clears what is there",
            counted(
                count,
                "removed value or database",
                "removed values or databases"
            )
        ),
    });
    outcome.finding(
        Level::Fail,
        &unreadable,
        [
            "row that cannot be read, which keeps servers from clearing what is behind it",
            "rows that cannot be read, which keep servers from clearing what is behind them",
        ],
        "tell the authors of Quoin, with these rows",
    );
    Ok(outcome.line(name))
}
