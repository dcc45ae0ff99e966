//! Whether this Quoin understands what lies in the store.

use crate::doctor::report::{Level, Line};
use crate::doctor::target::{DoctorTarget, rows};
use quoin_layout::{LAYOUT_VERSION, decode_counter};
use quoin_store::{Isolation, ReadTransaction, StoreError};

const NAME: &str = "layout";

/// What may be done with the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::doctor) enum Understanding {
    /// Everything.
    Full,
    /// There is nothing in it.
    Empty,
    /// Nothing: it is not touched.
    None,
}

/// Looks at the layout's version.
pub(in crate::doctor) async fn check(
    target: &DoctorTarget<'_>,
) -> Result<(Understanding, Line), StoreError> {
    let layout = &target.layout;
    let everything = layout.everything();
    let (version, first) = target
        .read(async |transaction: &dyn ReadTransaction| {
            let isolation = Isolation::Snapshot;
            let version = transaction.get(&layout.version_key(), isolation).await?;
            let (begin, end) = (&everything.begin, &everything.end);
            Ok((version, rows(transaction, begin, end, 1, isolation).await?))
        })
        .await?;
    let Some(version) = version else {
        return Ok(if first.is_empty() {
            let text = "nothing lies under this root prefix: a server begins here anew";
            (Understanding::Empty, Line::ok(NAME, text))
        } else {
            let text = "there are rows under this root prefix, but no layout version: something \
                        else keeps its data there - give Quoin a root prefix of its own";
            (Understanding::None, Line::new(Level::Fail, NAME, text))
        });
    };
    Ok(match decode_counter(Some(&version)) {
        Err(_) => {
            let text = "the layout version cannot be read: something else keeps its data under \
                        this root prefix, or the row is damaged";
            (Understanding::None, Line::new(Level::Fail, NAME, text))
        }
        Ok(found) if found > LAYOUT_VERSION => {
            let text = format!(
                "version {found}, and this Quoin knows versions up to {LAYOUT_VERSION}: a server \
                 refuses it - use a newer Quoin"
            );
            (Understanding::None, Line::new(Level::Fail, NAME, text))
        }
        Ok(found) if found < LAYOUT_VERSION => {
            let text = format!("version {found}, older than that of this Quoin, {LAYOUT_VERSION}");
            (
                Understanding::Full,
                Line::new(Level::Warn, NAME, format!("{text} - see CHANGELOG.md")),
            )
        }
        Ok(found) => (
            Understanding::Full,
            Line::ok(NAME, format!("version {found}, that of this Quoin")),
        ),
    })
}
