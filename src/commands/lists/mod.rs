//! List commands.

mod access;
mod blocking;
mod moves;
mod push_pop;
mod rows;
#[cfg(test)]
mod tests;

pub use blocking::ROWS as BLOCKING_ROWS;
pub use rows::ROWS;

use crate::commands::arguments::is_word;
use crate::error::CommandError;
use crate::types::list::End;

/// `LEFT` or `RIGHT`.
pub(crate) fn end(argument: &[u8]) -> Result<End, CommandError> {
    if is_word(argument, "left") {
        Ok(End::Left)
    } else if is_word(argument, "right") {
        Ok(End::Right)
    } else {
        Err(CommandError::Syntax)
    }
}
