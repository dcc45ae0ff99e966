//! BITOP.

use bytes::Bytes;

use crate::command::arguments::{argument, is_word, rest};
use crate::error::CommandError;
use crate::string::Combination;
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `BITOP AND|OR|XOR|NOT destkey key [key …]` → length of the result.
pub(super) async fn bitop(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let word = argument(arguments, 1)?;
    let combination = [
        ("and", Combination::And),
        ("or", Combination::Or),
        ("xor", Combination::Xor),
        ("not", Combination::Not),
    ]
    .into_iter()
    .find_map(|(name, combination)| is_word(word, name).then_some(combination))
    .ok_or(CommandError::Syntax)?;
    let names = rest(arguments, 3);
    if combination == Combination::Not && names.len() != 1 {
        return Err(CommandError::text(
            "ERR BITOP NOT must be called with a single source key.",
        ));
    }
    let sources = context.find_each(names).await?;
    let is_string = |value_type| value_type == ValueType::String;
    if !{ sources.iter().flatten() }.all(|key| is_string(key.meta.value_type)) {
        return Err(CommandError::WrongType);
    }
    let name = argument(arguments, 2)?;
    let length = context.string_combine(combination, &sources, name).await?;
    if length > 0 {
        context.notify(EventClasses::STRING, "set", name);
    } else if let Some(old) = context.find_any(name).await? {
        context.remove(&old);
        context.notify(EventClasses::GENERIC, "del", name);
    }
    Ok(Reply::Integer(i64::try_from(length).unwrap_or(i64::MAX)))
}
