//! SET, SETNX, SETEX, PSETEX, GETSET, MSET, MSETNX, MSETEX, SETRANGE, APPEND, and the expiry options of SET, GETEX
//! and MSETEX.

use bytes::Bytes;

use super::comparison::Comparison;
use crate::command::arguments::{argument, integer, is_word, rest};
use crate::command::key_specs::{KeyFlags, OVERWRITE, READ_UPDATE, UPDATE};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::string::{self, StringValue, StringValueMut};
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_base::limits::STRING_BYTES_MAX;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// A condition of SET or MSETEX.
#[derive(Clone, Copy)]
enum Condition<'a> {
    /// The key must exist (XX) or must not exist (NX).
    Exists(bool),
    /// Its value must be as demanded.
    Value(Comparison<'a>),
}

/// The options of SET.
#[derive(Default)]
struct Options<'a> {
    condition: Option<Condition<'a>>,
    returns_old: bool,
    expiry: Expiry<'a>,
}

impl<'a> Options<'a> {
    fn parse(mut words: &'a [Bytes]) -> Result<Self, CommandError> {
        let mut options = Self::default();
        while let [word, after @ ..] = words {
            words = if options.take_existence(word) {
                after
            } else if is_word(word, "get") {
                options.returns_old = true;
                after
            } else if let [operand, after @ ..] = after
                && options.condition.is_none()
                && let Some(comparison) = Comparison::named(word, operand)
            {
                options.condition = Some(Condition::Value(comparison));
                after
            } else {
                options
                    .expiry
                    .take_or_keep(words)
                    .ok_or(CommandError::Syntax)?
            };
        }
        Ok(options)
    }

    /// Takes NX or XX. Returns false if the word is neither, or another condition was given.
    fn take_existence(&mut self, word: &[u8]) -> bool {
        let wanted = is_word(word, "xx");
        let is_free = match self.condition {
            None => true,
            Some(Condition::Exists(before)) => before == wanted,
            Some(Condition::Value(_)) => false,
        };
        let is_taken = is_free && (wanted || is_word(word, "nx"));
        if is_taken {
            self.condition = Some(Condition::Exists(wanted));
        }
        is_taken
    }
}

/// `SET key value [NX|XX|IFEQ value|IFNE value|IFDEQ digest|IFDNE digest] [GET] [EX seconds|PX ms|EXAT time|PXAT
/// time-ms|KEEPTTL]` → OK, or null if a condition forbids it; with GET the value before.
pub(super) async fn set(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let options = Options::parse(rest(arguments, 3))?;
    let (name, value) = (argument(arguments, 1)?, argument(arguments, 2)?);
    let new_expiry = options.expiry.read(context.now_ms, "set")?;
    let keeps_expiry = matches!(options.expiry, Expiry::Kept);
    let needs_old = options.returns_old || options.condition.is_some() || keeps_expiry;
    let old = match needs_old {
        true => context.find_any(name).await?,
        false => None,
    };
    let old_value = match options.returns_old {
        true => old_value(context, old.as_ref()).await?,
        false => Reply::Null,
    };
    let is_allowed = match (options.condition, &old) {
        (None, _) => true,
        (Some(Condition::Exists(wanted)), old) => wanted == old.is_some(),
        (Some(Condition::Value(comparison)), None) => !comparison.wants_equal,
        (Some(Condition::Value(_)), Some(old)) if old.meta.value_type != ValueType::String => {
            return Err(CommandError::WrongType);
        }
        (Some(Condition::Value(comparison)), Some(old)) => comparison.holds(context, old).await?,
    };
    if !is_allowed {
        return Ok(old_value);
    }
    let old_expiry = old.and_then(|old| old.meta.expire_at_ms);
    let expire_at_ms = if keeps_expiry { old_expiry } else { new_expiry };
    string::set(context, name, value, expire_at_ms).await?;
    context.notify(EventClasses::STRING, "set", name);
    if new_expiry.is_some() {
        context.notify(EventClasses::GENERIC, "expire", name);
    }
    Ok(match options.returns_old {
        true => old_value,
        false => Reply::OK,
    })
}

/// The key flags of SET: with GET it reads the key too, and with a condition about the value it depends on it.
pub(super) fn key_flags_of_set(arguments: &[Bytes]) -> KeyFlags {
    let options = rest(arguments, 3);
    if options.iter().any(|word| is_word(word, "get")) {
        return READ_UPDATE;
    }
    let compares = |word: &Bytes| Comparison::named(word, word).is_some();
    match options.iter().any(compares) {
        true => UPDATE,
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
        Some(old) => Ok(Reply::Bulk(StringValue::open(context, old).get().await?)),
    }
}

/// `SETNX key value` → 1, or 0 if the key exists.
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
    string::set(context, name, value, Some(at_ms)).await?;
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

/// `MSETNX key value [key value …]` → 1, or 0 if any of the keys exists.
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

/// `MSETEX numkeys key value [key value …] [NX|XX] [EX seconds|PX ms|EXAT time|PXAT time-ms|KEEPTTL]` → 1, or 0 if a
/// condition forbids it.
pub(super) async fn msetex(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let number = integer(argument(arguments, 1)?).ok();
    let number = number.filter(|number| (1..=i64::from(i32::MAX)).contains(number));
    let number = number.and_then(|number| usize::try_from(number).ok());
    let number = number.ok_or(CommandError::text("ERR invalid numkeys value"))?;
    let (pairs, mut words) = rest(arguments, 2)
        .split_at_checked(number.saturating_mul(2))
        .ok_or(CommandError::text("ERR wrong number of key-value pairs"))?;
    let mut options = Options::default();
    while let [word, after @ ..] = words {
        words = match options.take_existence(word) {
            true => after,
            false => options
                .expiry
                .take_or_keep(words)
                .ok_or(CommandError::Syntax)?,
        };
    }
    let new_expiry = options.expiry.read(context.now_ms, "msetex")?;
    let keeps_expiry = matches!(options.expiry, Expiry::Kept);
    let names: Vec<Bytes> = pairs.iter().step_by(2).cloned().collect();
    let old = match options.condition.is_some() || keeps_expiry {
        true => context.find_each(&names).await?,
        false => Vec::new(),
    };
    if let Some(Condition::Exists(wanted)) = options.condition
        && old.iter().any(|old| old.is_some() != wanted)
    {
        return Ok(Reply::Integer(0));
    }
    // A key that is named twice keeps its expiry, because each write leaves it.
    let mut old_expiries = old
        .into_iter()
        .map(|old| old.and_then(|old| old.meta.expire_at_ms));
    for pair in pairs.chunks_exact(2) {
        let old_expiry = old_expiries.next().flatten();
        let [name, value] = pair else { continue };
        let expire_at_ms = if keeps_expiry { old_expiry } else { new_expiry };
        string::set(context, name, value, expire_at_ms).await?;
        context.notify(EventClasses::STRING, "set", name);
        if new_expiry.is_some() {
            context.notify(EventClasses::GENERIC, "expire", name);
        }
    }
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
    string::set(context, name, value, None).await?;
    context.notify(EventClasses::STRING, "set", name);
    Ok(())
}

/// `APPEND key value` → length.
pub(super) async fn append(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (name, value) = (argument(arguments, 1)?, argument(arguments, 2)?);
    let length = match context.find(name, ValueType::String).await? {
        None => {
            string::set(context, name, value, None).await?;
            value.len() as u64
        }
        Some(mut key) => {
            let length = StringValue::open(context, &key).length().await?;
            check_length(length, value.len())?;
            let mut string = StringValueMut::open(context, &mut key);
            if value.is_empty() {
                string.touch();
                length
            } else {
                string.write(length, value).await?
            }
        }
    };
    context.notify(EventClasses::STRING, "append", name);
    Ok(Reply::Integer(i64::try_from(length).unwrap_or(i64::MAX)))
}

/// `SETRANGE key offset value` → length.
pub(super) async fn setrange(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let offset = integer(argument(arguments, 2)?)?;
    let offset =
        u64::try_from(offset).map_err(|_| CommandError::text("ERR offset is out of range"))?;
    let (name, value) = (argument(arguments, 1)?, argument(arguments, 3)?);
    let found = context.find(name, ValueType::String).await?;
    if value.is_empty() {
        return Ok(Reply::Integer(match found {
            Some(key) => context.length(&key, context.isolation).await?,
            None => 0,
        }));
    }
    check_length(offset, value.len())?;
    let mut key = match found {
        Some(key) => key,
        None => string::set(context, name, &Bytes::new(), None).await?,
    };
    let mut string = StringValueMut::open(context, &mut key);
    let length = string.write(offset, value).await?;
    context.notify(EventClasses::STRING, "setrange", name);
    Ok(Reply::Integer(i64::try_from(length).unwrap_or(i64::MAX)))
}

fn check_length(offset: u64, added: usize) -> Result<(), CommandError> {
    if offset.saturating_add(added as u64) > STRING_BYTES_MAX as u64 {
        return Err(CommandError::text(
            "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
        ));
    }
    Ok(())
}

const MS_PER_SECOND: i64 = 1_000;

/// The option of a command about the expiry.
#[derive(Clone, Copy, Default)]
pub(super) enum Expiry<'a> {
    /// No option.
    #[default]
    Unsaid,
    /// KEEPTTL.
    Kept,
    /// PERSIST.
    Removed,
    /// EX, PX, EXAT or PXAT, with its time.
    At(TimeForm, &'a Bytes),
}

/// The form of a time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeForm {
    is_relative: bool,
    unit_ms: i64,
}

/// EX: seconds from now.
const SECONDS: TimeForm = TimeForm::new(true, MS_PER_SECOND);
/// PX: milliseconds from now.
const MILLISECONDS: TimeForm = TimeForm::new(true, 1);
const UNIX_SECONDS: TimeForm = TimeForm::new(false, MS_PER_SECOND);
const UNIX_MILLISECONDS: TimeForm = TimeForm::new(false, 1);

impl TimeForm {
    const fn new(is_relative: bool, unit_ms: i64) -> Self {
        Self {
            is_relative,
            unit_ms,
        }
    }

    /// The form of the times after an option.
    fn named(option: &[u8]) -> Option<Self> {
        [
            ("ex", SECONDS),
            ("px", MILLISECONDS),
            ("exat", UNIX_SECONDS),
            ("pxat", UNIX_MILLISECONDS),
        ]
        .into_iter()
        .find_map(|(name, form)| is_word(option, name).then_some(form))
    }

    /// Whether times are Unix times.
    pub(super) fn is_absolute(self) -> bool {
        !self.is_relative
    }

    /// The Unix time in milliseconds.
    ///
    /// # Errors
    /// Redis's, if the time is not a number, not positive or too large. `command` is in lower case.
    pub(super) fn read(self, text: &[u8], now_ms: i64, command: &str) -> Result<i64, CommandError> {
        let time = integer(text)?;
        let base_ms = if self.is_relative { now_ms } else { 0 };
        (time > 0)
            .then(|| time.checked_mul(self.unit_ms)?.checked_add(base_ms))
            .flatten()
            .ok_or_else(|| {
                CommandError::Text(format!("ERR invalid expire time in '{command}' command").into())
            })
    }
}

impl<'a> Expiry<'a> {
    /// The Unix time in milliseconds; `None` without a time.
    ///
    /// # Errors
    /// See [`TimeForm::read`].
    fn read(self, now_ms: i64, command: &str) -> Result<Option<i64>, CommandError> {
        match self {
            Self::At(form, text) => form.read(text, now_ms, command).map(Some),
            _ => Ok(None),
        }
    }

    /// [`Self::take`], or KEEPTTL.
    fn take_or_keep(&mut self, words: &'a [Bytes]) -> Option<&'a [Bytes]> {
        match words {
            [word, rest @ ..]
                if is_word(word, "keepttl") && matches!(self, Self::Unsaid | Self::Kept) =>
            {
                *self = Self::Kept;
                Some(rest)
            }
            _ => self.take(words),
        }
    }

    /// Takes EX, PX, EXAT or PXAT with its time from the front of `words`, and returns the words after
    /// them. `None` if the first word is none of these. As in Redis, an option may repeat, but two
    /// different ones are `None` too.
    pub(super) fn take(&mut self, words: &'a [Bytes]) -> Option<&'a [Bytes]> {
        let [option, time, rest @ ..] = words else {
            return None;
        };
        let form = TimeForm::named(option)?;
        match self {
            Expiry::Unsaid => {}
            Expiry::At(before, _) if *before == form => {}
            _ => return None,
        }
        *self = Expiry::At(form, time);
        Some(rest)
    }
}
