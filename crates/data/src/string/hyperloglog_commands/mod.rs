//! HyperLogLog commands.

mod debug;
mod estimate;
mod rows;
#[cfg(test)]
mod tests;

pub use rows::ROWS;

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::string::hyperloglog::HyperLogLog;
use crate::unit::context::ReadContext;
use quoin_layout::ValueType;

/// The HyperLogLog at a key.
async fn find(
    context: &ReadContext<'_>,
    name: &Bytes,
) -> Result<Option<(OpenKey, HyperLogLog)>, CommandError> {
    let Some(key) = context.find(name, ValueType::String).await? else {
        return Ok(None);
    };
    let found = HyperLogLog::parse(&context.string_get(&key).await?)?;
    Ok(Some((key, found)))
}
