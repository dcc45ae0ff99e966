//! What deleted keys and flushed databases have left for the background work of servers.

use crate::doctor::report::{Finding, Level, Line, Outcome, shown};
use crate::doctor::subject::{Subject, rows};
use crate::layout::successor;
use crate::limits::DOCTOR_PAGE_ROWS;
use crate::store::{Isolation, ReadTransaction, StoreError};

pub(super) async fn check(subject: &Subject<'_>, name: &'static str) -> Result<Line, StoreError> {
    let mut range = subject.layout.trash();
    let mut count = 0_u64;
    let mut unreadable = Finding::default();
    loop {
        let page = subject
            .read(async |transaction: &dyn ReadTransaction| {
                let limit = DOCTOR_PAGE_ROWS;
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
        for row in &page {
            count += 1;
            if subject.layout.read_trash_key(&row.key).is_err() {
                unreadable.add(|| shown(&row.key));
            }
        }
        match page.last() {
            Some(last) if page.len() >= DOCTOR_PAGE_ROWS => range.begin = successor(&last.key),
            _ => break,
        }
    }
    let mut outcome = Outcome::new(match count {
        0 => "nothing is left to be cleared".to_owned(),
        _ => format!("{count} removed values or databases: a running server clears them"),
    });
    outcome.finding(
        Level::Fail,
        &unreadable,
        "rows that cannot be read, which keep servers from clearing what is behind them",
        "tell the authors of Quoin, with these rows",
    );
    Ok(outcome.line(name))
}
