//! What is said where there is no such key or group.

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::stream::OpenGroup;
use crate::unit::context::ReadContext;
use quoin_layout::ValueType;
use quoin_store::Isolation;

/// A name as Redis formats it, as a C string, which ends at a zero byte.
pub(super) fn shown(name: &[u8]) -> String {
    let mut parts = name.split(|byte| *byte == 0);
    String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned()
}

/// What XREADGROUP, XPENDING, XCLAIM and XAUTOCLAIM say; `whence` is added at the end.
pub(super) fn no_key_or_group(key: &[u8], group: &[u8], whence: &str) -> CommandError {
    let (key, group) = (shown(key), shown(group));
    CommandError::Text(
        format!("NOGROUP No such key '{key}' or consumer group '{group}'{whence}").into(),
    )
}

/// What XGROUP and XINFO say of a group that a stream has not.
pub(super) fn no_group(key: &[u8], group: &[u8]) -> CommandError {
    let (key, group) = (shown(key), shown(group));
    CommandError::Text(
        format!("NOGROUP No such consumer group '{group}' for key name '{key}'").into(),
    )
}

/// What XGROUP and XINFO say of options that they do not have.
pub(super) fn subcommand_syntax(container: &str, subcommand: &[u8]) -> CommandError {
    let subcommand = shown(subcommand);
    CommandError::Text(
        format!(
            "ERR unknown subcommand or wrong number of arguments for '{subcommand}'. Try {container} \
             HELP."
        )
        .into(),
    )
}

/// A group of a key, or the refusal of XPENDING, XCLAIM and XAUTOCLAIM.
///
/// # Errors
/// NOGROUP; `WrongType`.
pub(super) async fn group_of(
    context: &ReadContext<'_>,
    key_name: &Bytes,
    name: &Bytes,
    isolation: Isolation,
) -> Result<(OpenKey, OpenGroup), CommandError> {
    let missing = || no_key_or_group(key_name, name, "");
    let key = context.find(key_name, ValueType::Stream).await?;
    let key = key.ok_or_else(missing)?;
    let group = context.stream_group(&key, name, isolation).await?;
    Ok((key, group.ok_or_else(missing)?))
}
