//! Writes of commands that are given the unit of work as a whole.

use crate::error::CommandError;
use crate::store::StoreError;
use crate::types::WriteContext;
use crate::types::unit::AnyUnit;

/// Writes all of it or, where the transaction cannot hold it, nothing.
///
/// # Errors
/// `StoreError::TooLarge`.
pub(super) fn write(
    unit: AnyUnit<'_>,
    database: u32,
    writes: impl FnOnce(&WriteContext<'_>),
) -> Result<(), CommandError> {
    let AnyUnit::Write(unit) = unit else {
        return Ok(());
    };
    let savepoint = unit.savepoint();
    writes(&unit.write_context(database));
    if unit.is_too_large() {
        unit.rollback(savepoint);
        return Err(StoreError::TooLarge.into());
    }
    unit.release(savepoint);
    Ok(())
}
