//! Fields that expire: HEXPIRE, HTTL and their variants, HPERSIST, HSETEX, HGETEX, HGETDEL. Replies and errors are those of
//! Redis 8.

use std::collections::HashSet;

use bytes::Bytes;

use crate::command::arguments::{argument, integer, is_word, rest};
use crate::command::expiry_conditions::Conditions;
use crate::command::plan::Plan;
use crate::error::CommandError;
use crate::fields;
use crate::hash::expiry::{FieldExpiry, Outcome};
use crate::hash::{Hash, HashMut, HashType};
use crate::keyspace::key::OpenKey;
use crate::prefetch::Prefetch;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_base::number::parse_i64;
use quoin_layout::{Entry, ValueType};
use quoin_resp::reply::Reply;

const MS_PER_SECOND: i64 = 1_000;

/// The latest expiry of a field (Redis: `HFE_MAX_ABS_TIME_MSEC`).
const EXPIRE_AT_MS_MAX: i64 = (1 << 46) - 1;

const NO_FIELDS_WORD: CommandError =
    CommandError::text("ERR Mandatory argument FIELDS is missing or not at the right position");
const OTHER_NUMBER: CommandError =
    CommandError::text("ERR The `numfields` parameter must match the number of arguments");
const NUMBER_NOT_POSITIVE: &str = "ERR Number of fields must be a positive integer";
const NUMBER_NOT_POSITIVE_OF_HEXPIRE: &str = "ERR Parameter `numFields` should be greater than 0";
const TWO_CONDITIONS: CommandError =
    CommandError::text("ERR Only one of FXX or FNX arguments can be specified");
const TWO_EXPIRIES: CommandError =
    CommandError::text("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified");

/// How a command expresses a time.
#[derive(Debug, Clone, Copy)]
struct TimeForm {
    is_relative: bool,
    unit_ms: i64,
}

const SECONDS: TimeForm = TimeForm {
    is_relative: true,
    unit_ms: MS_PER_SECOND,
};
const MILLISECONDS: TimeForm = TimeForm {
    is_relative: true,
    unit_ms: 1,
};
const UNIX_SECONDS: TimeForm = TimeForm {
    is_relative: false,
    unit_ms: MS_PER_SECOND,
};
const UNIX_MILLISECONDS: TimeForm = TimeForm {
    is_relative: false,
    unit_ms: 1,
};

impl TimeForm {
    /// The form of the time after an option.
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

    /// Reads a time. Returns the Unix time in milliseconds.
    fn read(self, text: &[u8], now_ms: i64, command: &str) -> Result<i64, CommandError> {
        let time = integer(text)?;
        if time < 0 {
            return Err(CommandError::text("ERR invalid expire time, must be >= 0"));
        }
        let base_ms = if self.is_relative { now_ms } else { 0 };
        time.checked_mul(self.unit_ms)
            .and_then(|time_ms| time_ms.checked_add(base_ms))
            .filter(|at_ms| *at_ms <= EXPIRE_AT_MS_MAX)
            .ok_or_else(|| {
                CommandError::Text(format!("ERR invalid expire time in '{command}' command").into())
            })
    }
}

/// Reads `FIELDS number field [field …]`, the end of a command, at `at`.
fn fields_at<'a>(
    arguments: &'a [Bytes],
    at: usize,
    not_positive: &'static str,
) -> Result<&'a [Bytes], CommandError> {
    if !is_word(argument(arguments, at)?, "fields") {
        return Err(NO_FIELDS_WORD);
    }
    let count = parse_i64(argument(arguments, at + 1)?).filter(|count| *count > 0);
    let count = count.ok_or(CommandError::text(not_positive))?;
    let fields = rest(arguments, at + 2);
    match usize::try_from(count) == Ok(fields.len()) {
        true => Ok(fields),
        false => Err(OTHER_NUMBER),
    }
}

/// `HEXPIRE key seconds [NX|XX|GT|LT] FIELDS number field [field …]` → for each field 1; 0 if a condition forbids it; 2 if
/// the time is in the past, so that the field was removed; −2 if there is none.
pub(super) async fn hexpire(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    set_expiry(context, arguments, "hexpire", SECONDS).await
}

/// `HPEXPIRE key milliseconds …`, like [`hexpire`].
pub(super) async fn hpexpire(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    set_expiry(context, arguments, "hpexpire", MILLISECONDS).await
}

/// `HEXPIREAT key unix-time-seconds …`, like [`hexpire`].
pub(super) async fn hexpireat(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    set_expiry(context, arguments, "hexpireat", UNIX_SECONDS).await
}

/// `HPEXPIREAT key unix-time-milliseconds …`, like [`hexpire`].
pub(super) async fn hpexpireat(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    set_expiry(context, arguments, "hpexpireat", UNIX_MILLISECONDS).await
}

async fn set_expiry(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    command: &str,
    form: TimeForm,
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let found = context.find(name, ValueType::Hash).await?;
    let at_ms = form.read(argument(arguments, 2)?, context.now_ms, command)?;
    let option = argument(arguments, 3)?;
    let (conditions, at) = match ["nx", "xx", "gt", "lt"].map(|word| is_word(option, word)) {
        [false, false, false, false] => (Conditions::default(), 3),
        _ => (Conditions::parse(std::slice::from_ref(option))?, 4),
    };
    let names = fields_at(arguments, at, NUMBER_NOT_POSITIVE_OF_HEXPIRE)?;
    let Some(mut key) = found else {
        return Ok(no_fields(names));
    };
    let allows = |present| conditions.allow(present, at_ms);
    let outcomes = HashMut::open(context, &mut key)
        .set_expiries(names, Some(at_ms), allows)
        .await?;
    tell(context, name, &key, &outcomes, "hexpire").await?;
    let codes = outcomes.into_iter().map(|outcome| match outcome {
        Outcome::NoField => -2,
        Outcome::Unchanged => 0,
        Outcome::Changed => 1,
        Outcome::Removed => 2,
    });
    Ok(Reply::Array(codes.map(Reply::Integer).collect()))
}

/// The reply about fields of a key that does not exist.
fn no_fields(names: &[Bytes]) -> Reply {
    Reply::Array(vec![Reply::Integer(-2); names.len()])
}

/// Reports expiries that were changed as `event` says, or fields that were removed instead. Ends
/// the removal.
async fn tell(
    context: &WriteContext<'_>,
    name: &Bytes,
    key: &OpenKey,
    outcomes: &[Outcome],
    event: &'static str,
) -> Result<(), CommandError> {
    if outcomes.contains(&Outcome::Removed) {
        context.notify(EventClasses::HASH, "hdel", name);
        context.remove_if_empty(key).await?;
    } else if outcomes.contains(&Outcome::Changed) {
        context.notify(EventClasses::HASH, event, name);
    }
    Ok(())
}

/// `HPERSIST key FIELDS number field [field …]` → for each field 1; −1 if it does not expire; −2 if there is none.
pub(super) async fn hpersist(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let found = context.find(name, ValueType::Hash).await?;
    let names = fields_at(arguments, 2, NUMBER_NOT_POSITIVE)?;
    let Some(mut key) = found else {
        return Ok(no_fields(names));
    };
    let outcomes = HashMut::open(context, &mut key)
        .set_expiries(names, None, |_| true)
        .await?;
    tell(context, name, &key, &outcomes, "hpersist").await?;
    let codes = outcomes.into_iter().map(|outcome| match outcome {
        Outcome::NoField => -2,
        Outcome::Changed => 1,
        Outcome::Unchanged | Outcome::Removed => -1,
    });
    Ok(Reply::Array(codes.map(Reply::Integer).collect()))
}

/// `HTTL key FIELDS number field [field …]` → for each field the seconds left, rounded up; −1 if it does not expire; −2
/// if there is none.
pub(super) async fn httl(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    read_expiry(context, arguments, |at_ms| {
        to_seconds(at_ms - context.now_ms)
    })
    .await
}

/// `HPTTL key FIELDS number field [field …]` → milliseconds left, like [`httl`].
pub(super) async fn hpttl(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    read_expiry(context, arguments, |at_ms| at_ms - context.now_ms).await
}

/// `HEXPIRETIME key FIELDS number field [field …]` → Unix times in seconds, like [`httl`].
pub(super) async fn hexpiretime(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    read_expiry(context, arguments, to_seconds).await
}

/// `HPEXPIRETIME key FIELDS number field [field …]` → Unix times in milliseconds, like [`httl`].
pub(super) async fn hpexpiretime(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    read_expiry(context, arguments, |at_ms| at_ms).await
}

fn to_seconds(time_ms: i64) -> i64 {
    time_ms.saturating_add(MS_PER_SECOND - 1) / MS_PER_SECOND
}

async fn read_expiry(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
    shown: impl Fn(i64) -> i64,
) -> Result<Reply, CommandError> {
    let found = context
        .find(argument(arguments, 1)?, ValueType::Hash)
        .await?;
    let names = fields_at(arguments, 2, NUMBER_NOT_POSITIVE)?;
    let Some(key) = found else {
        return Ok(no_fields(names));
    };
    let expiries = Hash::open(context, &key).expiries(names).await?;
    let codes = expiries.into_iter().map(|expiry| match expiry {
        FieldExpiry::NoField => -2,
        FieldExpiry::Never => -1,
        FieldExpiry::At(at_ms) => shown(at_ms),
    });
    Ok(Reply::Array(codes.map(Reply::Integer).collect()))
}

/// `HGETEX key [EX seconds|PX ms|EXAT time|PXAT time-ms|PERSIST] FIELDS number field [field …]` → values.
pub(super) async fn hgetex(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let found = context.find(name, ValueType::Hash).await?;
    let option = argument(arguments, 2)?;
    let (change, at) = if let Some(form) = TimeForm::named(option) {
        if arguments.len() < 6 {
            return Err(CommandError::WrongArity("hgetex".to_owned()));
        }
        let at_ms = form.read(argument(arguments, 3)?, context.now_ms, "hgetex")?;
        (Some((Some(at_ms), "hexpire")), 4)
    } else if is_word(option, "persist") {
        (Some((None, "hpersist")), 3)
    } else {
        (None, 2)
    };
    let names = fields_at(arguments, at, NUMBER_NOT_POSITIVE)?;
    let Some(mut key) = found else {
        return Ok(values(vec![None; names.len()]));
    };
    let mut read = Hash::open(context, &key).get_each(names).await?;
    if let Some((at_ms, event)) = change {
        let outcomes = HashMut::open(context, &mut key)
            .set_expiries(names, at_ms, |_| true)
            .await?;
        tell(context, name, &key, &outcomes, event).await?;
        if outcomes.contains(&Outcome::Removed) {
            keep_first(names, &mut read);
        }
    }
    Ok(values(read))
}

/// `HGETDEL key FIELDS number field [field …]` → the values of the removed fields.
pub(super) async fn hgetdel(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let found = context.find(name, ValueType::Hash).await?;
    let names = fields_at(arguments, 2, NUMBER_NOT_POSITIVE)?;
    let Some(mut key) = found else {
        return Ok(values(vec![None; names.len()]));
    };
    let mut read = Hash::open(context, &key).get_each(names).await?;
    let found = names.iter().zip(&read).filter(|(_, value)| value.is_some());
    let found: Vec<Bytes> = found.map(|(name, _)| name.clone()).collect();
    if HashMut::open(context, &mut key).remove(&found).await? > 0 {
        context.notify(EventClasses::HASH, "hdel", name);
        context.remove_if_empty(&key).await?;
    }
    keep_first(names, &mut read);
    Ok(values(read))
}

/// A field that was removed and is named again has no value.
fn keep_first(names: &[Bytes], values: &mut [Option<Bytes>]) {
    let mut seen = HashSet::new();
    for (name, value) in names.iter().zip(values) {
        if !seen.insert(name) {
            *value = None;
        }
    }
}

fn values(values: Vec<Option<Bytes>>) -> Reply {
    let replies = values.into_iter();
    Reply::Array(
        replies
            .map(|value| value.map_or(Reply::Null, Reply::Bulk))
            .collect(),
    )
}

/// What HSETEX does to expiries.
#[derive(Debug, Clone, Copy)]
enum SetExpiry {
    Removed,
    Kept,
    At(i64),
}

/// The arguments of HSETEX.
struct FieldsToSet {
    /// Whether all fields must exist (FXX), or none (FNX).
    must_exist: Option<bool>,
    expiry: SetExpiry,
    entries: Vec<Entry>,
}

impl FieldsToSet {
    fn parse(arguments: &[Bytes], now_ms: i64) -> Result<Self, CommandError> {
        let wrong_arity = || CommandError::WrongArity("hsetex".to_owned());
        let (mut must_exist, mut expiry) = (None, None);
        let mut words = rest(arguments, 2);
        loop {
            let [word, after @ ..] = words else {
                return Err(wrong_arity());
            };
            words = after;
            if is_word(word, "fields") {
                let [count, fields @ ..] = after else {
                    return Err(wrong_arity());
                };
                if fields.len() < 2 {
                    return Err(wrong_arity());
                }
                let count = parse_i64(count)
                    .and_then(|count| i32::try_from(count).ok())
                    .filter(|count| *count > 0)
                    .ok_or(CommandError::text("ERR invalid number of fields"))?;
                let (pairs, odd) = fields.as_chunks::<2>();
                if !odd.is_empty() || i32::try_from(pairs.len()) != Ok(count) {
                    return Err(wrong_arity());
                }
                let entries = pairs.iter();
                let entries = entries.map(|[name, value]| Entry::new(name.clone(), value.clone()));
                return Ok(Self {
                    must_exist,
                    expiry: expiry.unwrap_or(SetExpiry::Removed),
                    entries: entries.collect(),
                });
            }
            let form = TimeForm::named(word);
            if let Some(exists) = match is_word(word, "fxx") {
                true => Some(true),
                false => is_word(word, "fnx").then_some(false),
            } {
                if must_exist.replace(exists).is_some() {
                    return Err(TWO_CONDITIONS);
                }
            } else if form.is_some() || is_word(word, "keepttl") {
                if expiry.is_some() {
                    return Err(TWO_EXPIRIES);
                }
                expiry = Some(SetExpiry::Kept);
                if let Some(form) = form {
                    let [time, after @ ..] = words else {
                        return Err(wrong_arity());
                    };
                    expiry = Some(SetExpiry::At(form.read(time, now_ms, "hsetex")?));
                    words = after;
                }
            } else {
                // Redis's text is a C string and ends at a zero byte.
                let shown = word.split(|byte| *byte == 0).next().unwrap_or_default();
                let shown = String::from_utf8_lossy(shown);
                return Err(CommandError::Text(
                    format!("ERR unknown argument: {shown}").into(),
                ));
            }
        }
    }
}

/// `HSETEX key [FNX|FXX] [EX seconds|PX ms|EXAT time|PXAT time-ms|KEEPTTL] FIELDS number field value [field value …]` → 1,
/// or 0 if a condition forbids it.
pub(super) async fn hsetex(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let FieldsToSet {
        must_exist,
        expiry,
        mut entries,
    } = FieldsToSet::parse(arguments, context.now_ms)?;
    let name = argument(arguments, 1)?;
    let found = context.find(name, ValueType::Hash).await?;
    let names: Vec<Bytes> = entries.iter().map(|entry| entry.name.clone()).collect();
    if let Some(must_exist) = must_exist {
        let exist = match &found {
            Some(key) => Hash::open(context, key).contains_each(&names).await?,
            None => vec![false; names.len()],
        };
        if exist.contains(&!must_exist) {
            return Ok(Reply::Integer(0));
        }
    }
    match expiry {
        SetExpiry::Removed => {}
        SetExpiry::Kept => {
            if let Some(key) = &found {
                let expiries = Hash::open(context, key).expiries(&names).await?;
                for (entry, expiry) in entries.iter_mut().zip(expiries) {
                    if let FieldExpiry::At(at_ms) = expiry {
                        entry.expire_at_ms = Some(at_ms);
                    }
                }
            }
        }
        SetExpiry::At(at_ms) if at_ms <= context.now_ms => {
            set_and_expire(context, name, found, &names).await?;
            return Ok(Reply::Integer(1));
        }
        SetExpiry::At(at_ms) => {
            for entry in &mut entries {
                entry.expire_at_ms = Some(at_ms);
            }
        }
    }
    fields::put::<HashType>(context, name, found, entries).await?;
    context.notify(EventClasses::HASH, "hset", name);
    if let SetExpiry::At(_) = expiry {
        context.notify(EventClasses::HASH, "hexpire", name);
    }
    Ok(Reply::Integer(1))
}

/// HSETEX with a time in the past: for clients, the fields are set and then removed.
async fn set_and_expire(
    context: &WriteContext<'_>,
    name: &Bytes,
    found: Option<OpenKey>,
    names: &[Bytes],
) -> Result<(), CommandError> {
    let exists = match &found {
        Some(key) => context.has_elements(key).await?,
        None => false,
    };
    if exists && let Some(mut key) = found {
        HashMut::open(context, &mut key).remove(names).await?;
        context.notify(EventClasses::HASH, "hset", name);
        context.notify(EventClasses::HASH, "hdel", name);
        context.remove_if_empty(&key).await?;
        return Ok(());
    }
    context.notify(EventClasses::HASH, "hset", name);
    context.notify(EventClasses::HASH, "hdel", name);
    context.notify(EventClasses::GENERIC, "del", name);
    Ok(())
}

/// The fields that the arguments name.
fn named(arguments: &[Bytes]) -> Option<&[Bytes]> {
    let options = rest(arguments, 2);
    let at = options.iter().position(|word| is_word(word, "fields"))?;
    options.get(at + 2..)
}

/// The plan of commands that name fields after FIELDS.
pub(super) fn plan(arguments: &[Bytes]) -> Option<Plan> {
    let names = named(arguments)?;
    Some(Plan::Read(vec![Prefetch::members(ValueType::Hash, names)]))
}

/// The plan of HSETEX.
pub(super) fn plan_set(arguments: &[Bytes]) -> Option<Plan> {
    let (pairs, _) = named(arguments)?.as_chunks::<2>();
    let names = pairs.iter().map(|[name, _]| name);
    Some(Plan::Read(vec![Prefetch::members(ValueType::Hash, names)]))
}
