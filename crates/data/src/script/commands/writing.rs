//! Writes of commands that are given the unit of work as a whole.

use crate::error::CommandError;
use crate::unit::AnyUnit;
use crate::unit::context::WriteContext;
use quoin_store::StoreError;

/// Writes all of it or, where the transaction cannot hold it, nothing.
///
/// # Errors
/// `StoreError::TooLarge`, and those of `writes`.
pub(super) fn write(
    unit: AnyUnit<'_>,
    database: u32,
    writes: impl FnOnce(&WriteContext<'_>) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let AnyUnit::Write(unit) = unit else {
        return Ok(());
    };
    let savepoint = unit.savepoint();
    let mut written = writes(&unit.write_context(database));
    if unit.is_too_large() {
        written = Err(StoreError::TooLarge.into());
    }
    match written {
        Ok(()) => unit.release(savepoint),
        Err(_) => unit.rollback(savepoint),
    }
    written
}
