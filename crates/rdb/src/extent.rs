//! Finds the end of a value in an RDB file without reading its elements.

use std::io::Read;

use super::OwnType;
use super::file::{Input, RdbError};

/// Bytes of the id of a stream's entry.
const STREAM_ID_BYTES: u64 = 16;

/// Bytes of a time in milliseconds.
const TIME_BYTES: u64 = 8;

/// What was passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// A value of a type of Redis's or Quoin's own.
    Value,
    /// A module's value.
    Module,
}

/// Passes over a value of this type.
pub(crate) fn pass_value<R: Read>(
    input: &mut Input<R>,
    rdb_type: u8,
    is_of_valkey: bool,
) -> Result<Extent, RdbError> {
    match rdb_type {
        // A string, or a value that is packed into one.
        0 | 9..=13 | 16 | 17 | 20 => input.pass_string()?,
        // Lists and sets, and lists of packed nodes.
        1 | 2 | 14 => pass_strings(input, 1)?,
        4 => pass_strings(input, 2)?,
        3 => {
            for _ in 0..input.length()? {
                input.pass_string()?;
                pass_text_score(input)?;
            }
        }
        5 => {
            for _ in 0..input.length()? {
                input.pass_string()?;
                input.pass(8)?;
            }
        }
        18 => {
            for _ in 0..input.length()? {
                // How the node is packed.
                input.length()?;
                input.pass_string()?;
            }
        }
        15 | 19 | 21 | 26 => pass_stream(input, rdb_type)?,
        22 if is_of_valkey => {
            for _ in 0..input.length()? {
                input.pass_string()?;
                input.pass_string()?;
                input.pass(TIME_BYTES)?;
            }
        }
        22 => pass_expiring_hash(input)?,
        23 => input.pass_string()?,
        24 => {
            input.pass(TIME_BYTES)?;
            pass_expiring_hash(input)?;
        }
        25 => {
            input.pass(TIME_BYTES)?;
            input.pass_string()?;
        }
        6 => {
            return Err(
                input.damaged("a module's value of Redis before 4.0, whose end is not told")
            );
        }
        7 => {
            // The module's id, or that of a type of Quoin's.
            if OwnType::of(input.length()?).is_some() {
                pass_module_parts(input)?;
                return Ok(Extent::Value);
            }
            input.stop_keeping();
            pass_module_parts(input)?;
            return Ok(Extent::Module);
        }
        _ => return Err(input.damaged("an unknown type")),
    }
    Ok(Extent::Value)
}

/// Passes over data of a module that belongs to no key.
pub(crate) fn pass_module_data<R: Read>(input: &mut Input<R>) -> Result<(), RdbError> {
    // The module's id, and when it is to be loaded.
    input.length()?;
    input.length()?;
    input.length()?;
    pass_module_parts(input)
}

fn pass_module_parts<R: Read>(input: &mut Input<R>) -> Result<(), RdbError> {
    loop {
        match input.length()? {
            0 => return Ok(()),
            // Integers, a float, a double, a string.
            1 | 2 => drop(input.length()?),
            3 => input.pass(4)?,
            4 => input.pass(8)?,
            5 => input.pass_string()?,
            _ => return Err(input.damaged("a module's value")),
        }
    }
}

/// A count, and for each of them `each` strings.
fn pass_strings<R: Read>(input: &mut Input<R>, each: u64) -> Result<(), RdbError> {
    for _ in 0..input.length()? {
        for _ in 0..each {
            input.pass_string()?;
        }
    }
    Ok(())
}

/// Each field's expiry, the field, its value.
fn pass_expiring_hash<R: Read>(input: &mut Input<R>) -> Result<(), RdbError> {
    for _ in 0..input.length()? {
        input.length()?;
        input.pass_string()?;
        input.pass_string()?;
    }
    Ok(())
}

/// Passes over data of modules about the key that follows.
pub(crate) fn pass_key_data<R: Read>(input: &mut Input<R>) -> Result<(), RdbError> {
    for _ in 0..input.length()? {
        // What module and version it is of.
        input.pass(4)?;
        pass_module_parts(input)?;
    }
    Ok(())
}

/// A score as a short text. The three greatest lengths mean special numbers without digits.
fn pass_text_score<R: Read>(input: &mut Input<R>) -> Result<(), RdbError> {
    match input.byte()? {
        253..=255 => Ok(()),
        bytes => input.pass(bytes.into()),
    }
}

fn pass_stream<R: Read>(input: &mut Input<R>, rdb_type: u8) -> Result<(), RdbError> {
    let knows_first_id = rdb_type >= 19;
    let knows_activity = rdb_type >= 21;
    // Nodes: the id that each begins with, and its entries.
    pass_strings(input, 2)?;
    // The number of entries and the last id; the first id, the greatest deleted one, entries ever.
    let numbers = if knows_first_id { 8 } else { 3 };
    pass_lengths(input, numbers)?;
    for _ in 0..input.length()? {
        // A group: its name, its last id, and how many entries it has read.
        input.pass_string()?;
        pass_lengths(input, if knows_first_id { 3 } else { 2 })?;
        for _ in 0..input.length()? {
            input.pass(STREAM_ID_BYTES + TIME_BYTES)?;
            input.length()?;
        }
        for _ in 0..input.length()? {
            // A consumer: its name, when it was seen, when it was active, what is pending.
            input.pass_string()?;
            input.pass(if knows_activity {
                2 * TIME_BYTES
            } else {
                TIME_BYTES
            })?;
            let pending = input.length()?;
            input.pass(pending.saturating_mul(STREAM_ID_BYTES))?;
        }
    }
    if rdb_type >= 26 {
        // Producers, and the recently added messages of each.
        pass_lengths(input, 2)?;
        for _ in 0..input.length()? {
            input.pass_string()?;
            for _ in 0..input.length()? {
                input.pass_string()?;
                pass_lengths(input, 2)?;
            }
        }
        pass_lengths(input, 2)?;
    }
    Ok(())
}

fn pass_lengths<R: Read>(input: &mut Input<R>, count: u64) -> Result<(), RdbError> {
    for _ in 0..count {
        input.length()?;
    }
    Ok(())
}
