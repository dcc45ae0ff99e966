//! Commands that depend on the value of a string: the conditions IFEQ, IFNE, IFDEQ and IFDNE of SET and DELEX; DELEX,
//! DELIFEQ and DIGEST.

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::command::arguments::{argument, is_word};
use crate::command::key_specs::{DELETE, KeyFlags, REMOVE};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::string::StringValue;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// Length of a digest: XXH3 with 64 bits, in hexadecimal.
const DIGEST_CHARACTERS: usize = 16;

/// A condition about the value of a string.
#[derive(Debug, Clone, Copy)]
pub(super) struct Comparison<'a> {
    /// Whether it is about the digest of the value.
    is_of_digest: bool,
    /// Whether the value must be equal. Otherwise it must differ.
    pub(super) wants_equal: bool,
    /// The value or the digest to compare with.
    operand: &'a Bytes,
}

impl<'a> Comparison<'a> {
    /// The condition of an option and its operand; `None` if it is another option.
    pub(super) fn named(option: &[u8], operand: &'a Bytes) -> Option<Self> {
        [
            ("ifeq", false, true),
            ("ifne", false, false),
            ("ifdeq", true, true),
            ("ifdne", true, false),
        ]
        .into_iter()
        .find_map(|(name, is_of_digest, wants_equal)| {
            is_word(option, name).then_some(Self {
                is_of_digest,
                wants_equal,
                operand,
            })
        })
    }

    /// Whether a string is as demanded.
    ///
    /// # Errors
    /// `Text` if the operand cannot be a digest.
    pub(super) async fn holds(
        &self,
        context: &ReadContext<'_>,
        key: &OpenKey,
    ) -> Result<bool, CommandError> {
        if self.is_of_digest && self.operand.len() != DIGEST_CHARACTERS {
            return Err(CommandError::text(
                "ERR must be exactly 16 hexadecimal characters",
            ));
        }
        let string = StringValue::open(context, key);
        let is_equal = match self.is_of_digest {
            true => digest_of(&string.get().await?).eq_ignore_ascii_case(self.operand),
            // A long value need not be read.
            false if string.length().await? != self.operand.len() as u64 => false,
            false => string.get().await? == self.operand,
        };
        Ok(is_equal == self.wants_equal)
    }
}

fn digest_of(value: &[u8]) -> Vec<u8> {
    format!("{:016x}", xxh3_64(value)).into_bytes()
}

/// `DIGEST key` → digest of the value, or null if there is no key.
pub(super) async fn digest(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let key = context.find(argument(arguments, 1)?, ValueType::String);
    Ok(match key.await? {
        Some(key) => Reply::bulk(digest_of(&StringValue::open(context, &key).get().await?)),
        None => Reply::Null,
    })
}

/// `DELEX key [IFEQ value|IFNE value|IFDEQ digest|IFDNE digest]` → 1, or 0 if there is no key or the condition forbids
/// it. As in Redis, arguments of a missing key are not checked.
pub(super) async fn delex(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let condition = match arguments {
        [_, _] => None,
        [_, _, option, operand] => Some((option, operand)),
        _ => return Err(CommandError::WrongArity("delex".to_owned())),
    };
    let name = argument(arguments, 1)?;
    let Some(key) = context.find_any(name).await? else {
        return Ok(Reply::Integer(0));
    };
    if let Some((option, operand)) = condition {
        if key.meta.value_type != ValueType::String {
            return Err(CommandError::text(
                "ERR Key should be of string type if conditions are specified",
            ));
        }
        let comparison = Comparison::named(option, operand).ok_or(CommandError::text(
            "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE",
        ))?;
        if !comparison.holds(context, &key).await? {
            return Ok(Reply::Integer(0));
        }
    }
    remove(context, name, &key)
}

/// The key flags of DELEX: without a condition it does not depend on the value.
pub(super) fn key_flags_of_delex(arguments: &[Bytes]) -> KeyFlags {
    match arguments.len() {
        ..=2 => REMOVE,
        _ => DELETE,
    }
}

/// `DELIFEQ key value` → 1, or 0 if there is no key or its value differs. From Valkey.
pub(super) async fn delifeq(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (name, operand) = (argument(arguments, 1)?, argument(arguments, 2)?);
    let comparison = Comparison {
        is_of_digest: false,
        wants_equal: true,
        operand,
    };
    match context.find(name, ValueType::String).await? {
        Some(key) if comparison.holds(context, &key).await? => remove(context, name, &key),
        _ => Ok(Reply::Integer(0)),
    }
}

fn remove(context: &WriteContext<'_>, name: &Bytes, key: &OpenKey) -> Result<Reply, CommandError> {
    context.remove(key);
    context.notify(EventClasses::GENERIC, "del", name);
    Ok(Reply::Integer(1))
}
