//! SET and its like.

use bytes::Bytes;

use super::expiry::{Expiry, MILLISECONDS, SECONDS, TimeForm};
use crate::command::arguments::{argument, is_word, rest};
use crate::command::key_specs::{KeyFlags, OVERWRITE, READ_UPDATE};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// The options of SET.
#[derive(Default)]
struct Options<'a> {
    /// Whether there must be a key (XX) or must be none (NX).
    is_there: Option<bool>,
    answers_old: bool,
    expiry: Expiry<'a>,
}

impl<'a> Options<'a> {
    fn parse(mut words: &'a [Bytes]) -> Result<Self, CommandError> {
        let mut options = Self::default();
        while let [word, after @ ..] = words {
            words = if is_word(word, "nx") && options.is_there != Some(true) {
                options.is_there = Some(false);
                after
            } else if is_word(word, "xx") && options.is_there != Some(false) {
                options.is_there = Some(true);
                after
            } else if is_word(word, "get") {
                options.answers_old = true;
                after
            } else if is_word(word, "keepttl")
                && matches!(options.expiry, Expiry::Unsaid | Expiry::Kept)
            {
                options.expiry = Expiry::Kept;
                after
            } else {
                options.expiry.take(words).ok_or(CommandError::Syntax)?
            };
        }
        Ok(options)
    }
}

/// `SET key value [NX|XX] [GET] [EX seconds|PX ms|EXAT time|PXAT time-ms|KEEPTTL]` → OK, or nothing
/// where a condition forbids it; with GET the value before.
pub(super) async fn set(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let options = Options::parse(rest(arguments, 3))?;
    let (name, value) = (argument(arguments, 1)?, argument(arguments, 2)?);
    let new_expiry = match options.expiry {
        Expiry::At(form, text) => Some(form.read(text, context.now_ms, "set")?),
        _ => None,
    };
    let keeps_expiry = matches!(options.expiry, Expiry::Kept);
    let needs_old = options.answers_old || options.is_there.is_some() || keeps_expiry;
    let old = match needs_old {
        true => context.find_any(name).await?,
        false => None,
    };
    let old_value = match options.answers_old {
        true => old_value(context, old.as_ref()).await?,
        false => Reply::Null,
    };
    if options
        .is_there
        .is_some_and(|wanted| wanted != old.is_some())
    {
        return Ok(old_value);
    }
    let old_expiry = old.and_then(|old| old.meta.expire_at_ms);
    let expire_at_ms = if keeps_expiry { old_expiry } else { new_expiry };
    context.string_set(name, value, expire_at_ms).await?;
    context.notify(EventClasses::STRING, "set", name);
    if new_expiry.is_some() {
        context.notify(EventClasses::GENERIC, "expire", name);
    }
    Ok(match options.answers_old {
        true => old_value,
        false => Reply::OK,
    })
}

/// What SET with GET does to its key, and SET without.
pub(super) fn key_flags_of_set(arguments: &[Bytes]) -> KeyFlags {
    let mut options = rest(arguments, 3).iter();
    match options.any(|word| is_word(word, "get")) {
        true => READ_UPDATE,
        false => OVERWRITE,
    }
}

async fn old_value(
    context: &WriteContext<'_>,
    old: Option<&OpenKey>,
) -> Result<Reply, CommandError> {
    match old {
        None => Ok(Reply::Null),
        Some(old) if old.meta.value_type != ValueType::String => Err(CommandError::WrongType),
        Some(old) => Ok(Reply::Bulk(context.string_get(old).await?)),
    }
}

/// `SETNX key value` → 1, or 0 where there is a key.
pub(super) async fn setnx(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    if context.find_any(name).await?.is_some() {
        return Ok(Reply::Integer(0));
    }
    put(context, name, argument(arguments, 2)?).await?;
    Ok(Reply::Integer(1))
}

/// `SETEX key seconds value` → OK.
pub(super) async fn setex(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    set_with_expiry(context, arguments, SECONDS, "setex").await
}

/// `PSETEX key milliseconds value` → OK.
pub(super) async fn psetex(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    set_with_expiry(context, arguments, MILLISECONDS, "psetex").await
}

async fn set_with_expiry(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    form: TimeForm,
    command: &'static str,
) -> Result<Reply, CommandError> {
    let at_ms = form.read(argument(arguments, 2)?, context.now_ms, command)?;
    let (name, value) = (argument(arguments, 1)?, argument(arguments, 3)?);
    context.string_set(name, value, Some(at_ms)).await?;
    context.notify(EventClasses::STRING, "set", name);
    context.notify(EventClasses::GENERIC, "expire", name);
    Ok(Reply::OK)
}

/// `GETSET key value` → the value before.
pub(super) async fn getset(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let old = context.find(name, ValueType::String).await?;
    let old = old_value(context, old.as_ref()).await?;
    put(context, name, argument(arguments, 2)?).await?;
    Ok(old)
}

/// `MSET key value [key value …]` → OK.
pub(super) async fn mset(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    put_pairs(context, pairs(arguments, "mset")?).await?;
    Ok(Reply::OK)
}

/// `MSETNX key value [key value …]` → 1, or 0 where there is any of the keys.
pub(super) async fn msetnx(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let pairs = pairs(arguments, "msetnx")?;
    let names: Vec<Bytes> = pairs.iter().step_by(2).cloned().collect();
    let found = context.find_each(&names).await?;
    if found.iter().any(Option::is_some) {
        return Ok(Reply::Integer(0));
    }
    put_pairs(context, pairs).await?;
    Ok(Reply::Integer(1))
}

fn pairs<'a>(arguments: &'a [Bytes], command: &str) -> Result<&'a [Bytes], CommandError> {
    match rest(arguments, 1) {
        pairs if pairs.len().is_multiple_of(2) => Ok(pairs),
        _ => Err(CommandError::WrongArity(command.to_owned())),
    }
}

async fn put_pairs(context: &WriteContext<'_>, pairs: &[Bytes]) -> Result<(), CommandError> {
    for pair in pairs.chunks_exact(2) {
        if let [name, value] = pair {
            put(context, name, value).await?;
        }
    }
    Ok(())
}

async fn put(context: &WriteContext<'_>, name: &Bytes, value: &Bytes) -> Result<(), CommandError> {
    context.string_set(name, value, None).await?;
    context.notify(EventClasses::STRING, "set", name);
    Ok(())
}
