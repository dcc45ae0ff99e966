//! Arguments that commands of task queues share.

use std::time::Duration;

use bytes::Bytes;

use crate::command::arguments::{
    double_or, integer, integer_at_least, integer_or, is_word, rest, to_usize,
};
use crate::error::CommandError;
use crate::taskqueue::add::NewTask;
use crate::taskqueue::resources::{Amounts, too_many_resources};
use crate::taskqueue::results::NewResult;
use quoin_base::limits::{
    TASK_AFTER_MAX, TASK_COUNT_MAX, TASK_GROUP_BYTES_MAX, TASK_HAVING_RESOURCES_MAX,
    TASK_ID_BYTES_MAX, TASK_ID_KEYWORDS, TASK_PROGRESS_BYTES_MAX, TASK_REASON_BYTES_MAX,
    TASK_RESOURCE_NAME_BYTES_MAX, TASK_RESOURCES_MAX, TASK_RESULT_BYTES_MAX, TASK_TAKE_KEYWORDS,
    TASK_TIME_MS_MAX, TASK_UNIQUE_BYTES_MAX, TASK_WORKER_BYTES_MAX, is_task_traceparent,
};
use quoin_layout::{TaskSpec, TaskState, TaskUnique};

/// The word before a list of amounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clause {
    /// The needs of a task.
    Needs,
    /// What a consumer has; may be infinite.
    Having,
}

impl Clause {
    /// Refuses too many resources. Without a limit, half a million names would each be compared with all others.
    fn check_room(self, named: usize) -> Result<(), CommandError> {
        match self {
            Clause::Needs if named >= TASK_RESOURCES_MAX => Err(too_many_resources()),
            Clause::Having if named >= TASK_HAVING_RESOURCES_MAX => Err(CommandError::Text(
                format!("ERR HAVING names at most {TASK_HAVING_RESOURCES_MAX} resources").into(),
            )),
            _ => Ok(()),
        }
    }
}

/// The pairs after `NEEDS` or `HAVING`, up to a keyword of the command, and the words from there on.
///
/// # Errors
/// `Syntax` if there is no pair, or half of one. `Text` for an invalid amount, for too many resources, and for needs
/// of a resource that TASK.TAKE could not name.
pub(super) fn amounts<'a>(
    words: &'a [Bytes],
    keywords: &[&str],
    clause: Clause,
) -> Result<(Amounts, &'a [Bytes]), CommandError> {
    let mut amounts = Amounts::default();
    let mut words = words;
    while let Some((name, after)) = words.split_first() {
        if keywords.iter().any(|keyword| is_word(name, keyword)) {
            break;
        }
        let Some((amount, after)) = after.split_first() else {
            return Err(CommandError::Syntax);
        };
        let amount = double_or(amount, "ERR amount of a resource is not a valid float")?;
        if amount < 0.0 || (amount.is_infinite() && clause == Clause::Needs) {
            return Err(CommandError::text(
                "ERR amount of a resource is out of range, must be a finite number, zero or more",
            ));
        }
        if name.is_empty() || name.len() > TASK_RESOURCE_NAME_BYTES_MAX {
            return Err(CommandError::Text(
                format!(
                    "ERR name of a resource must have 1 to {TASK_RESOURCE_NAME_BYTES_MAX} bytes"
                )
                .into(),
            ));
        }
        if clause == Clause::Needs && TASK_TAKE_KEYWORDS.iter().any(|word| is_word(name, word)) {
            return Err(CommandError::text(
                "ERR name of a resource cannot be that of an option",
            ));
        }
        if amounts.0.iter().any(|(known, _)| known == name) {
            return Err(CommandError::text("ERR resource is named twice"));
        }
        clause.check_room(amounts.0.len())?;
        amounts.0.push((name.clone(), amount));
        words = after;
    }
    if amounts.0.is_empty() {
        return Err(CommandError::Syntax);
    }
    Ok((amounts, words))
}

/// Checks a time.
///
/// # Errors
/// `too_small` below `least`, `too_large` above [`TASK_TIME_MS_MAX`].
pub(super) fn milliseconds(
    time_ms: i64,
    least: i64,
    too_small: &'static str,
    too_large: impl FnOnce() -> CommandError,
) -> Result<i64, CommandError> {
    match time_ms {
        time_ms if time_ms < least => Err(CommandError::text(too_small)),
        time_ms if time_ms > TASK_TIME_MS_MAX => Err(too_large()),
        time_ms => Ok(time_ms),
    }
}

/// The refusal of a lease or a delay.
pub(super) fn too_long(what: &str) -> CommandError {
    CommandError::Text(
        format!("ERR {what} is out of range, must be at most {TASK_TIME_MS_MAX} milliseconds")
            .into(),
    )
}

/// A lease.
///
/// # Errors
/// `Text` if the word is not a lease; see [`milliseconds`].
pub(super) fn lease(word: &[u8]) -> Result<i64, CommandError> {
    let too_small = "ERR lease is out of range, must be positive";
    let time_ms = integer_or(word, "ERR lease is not an integer or out of range")?;
    milliseconds(time_ms, 1, too_small, || too_long("lease"))
}

/// A delay.
///
/// # Errors
/// `Text` if the word is not a delay; see [`milliseconds`].
pub(super) fn delay(word: &[u8]) -> Result<i64, CommandError> {
    let too_small = "ERR delay is out of range, must be zero or more";
    let time_ms = integer_or(word, "ERR delay is not an integer or out of range")?;
    milliseconds(time_ms, 0, too_small, || too_long("delay"))
}

/// How long until a task is too old.
///
/// # Errors
/// `Text` if the word is not such a time. See [`milliseconds`].
pub(super) fn time_to_live(word: &[u8]) -> Result<i64, CommandError> {
    let too_small = "ERR TTL is out of range, must be zero or more";
    let time_ms = integer_or(word, "ERR TTL is not an integer or out of range")?;
    milliseconds(time_ms, 0, too_small, || too_long("TTL"))
}

/// A token, and for how long no other task is added with it.
///
/// # Errors
/// `Text` if it is not a token, or the time is invalid. See [`milliseconds`].
pub(super) fn unique(token: &Bytes, window: &[u8]) -> Result<TaskUnique, CommandError> {
    if token.is_empty() || token.len() > TASK_UNIQUE_BYTES_MAX {
        return Err(CommandError::Text(
            format!("ERR token of UNIQUE must have 1 to {TASK_UNIQUE_BYTES_MAX} bytes").into(),
        ));
    }
    let too_small = "ERR time of UNIQUE is out of range, must be positive";
    let time_ms = integer_or(
        window,
        "ERR time of UNIQUE is not an integer or out of range",
    )?;
    Ok(TaskUnique {
        token: token.clone(),
        window_ms: milliseconds(time_ms, 1, too_small, || too_long("time of UNIQUE"))?,
    })
}

const ADD_KEYWORDS: &[&str] = &[
    "id",
    "needs",
    "delay",
    "maxtries",
    "ttl",
    "unique",
    "group",
    "after",
    "traceparent",
];

/// A task: `priority payload [ID id] [NEEDS resource amount …] [DELAY ms] [MAXTRIES n] [TTL ms] [UNIQUE token ms]
/// [GROUP name] [AFTER n id [id …]] [TRACEPARENT value]`.
///
/// # Errors
/// `Syntax`, and those of each word.
pub(super) fn new_task(
    priority: &[u8],
    payload: &Bytes,
    mut words: &[Bytes],
) -> Result<NewTask, CommandError> {
    let mut id = None;
    let mut awaited = Vec::new();
    let mut traceparent = None;
    let mut task = TaskSpec {
        priority: double_or(priority, "ERR priority is not a valid float")?,
        payload: payload.clone(),
        ..TaskSpec::default()
    };
    while let Some((word, after)) = words.split_first() {
        if is_word(word, "needs") && task.needs.is_empty() {
            let (needs, after) = amounts(after, ADD_KEYWORDS, Clause::Needs)?;
            (task.needs, words) = (needs.0, after);
            continue;
        }
        if is_word(word, "after") && awaited.is_empty() {
            (awaited, words) = awaited_ids(after)?;
            continue;
        }
        if let [token, window, after @ ..] = after
            && is_word(word, "unique")
            && task.unique.is_none()
        {
            task.unique = Some(unique(token, window)?);
            words = after;
            continue;
        }
        let Some((value, after)) = after.split_first() else {
            return Err(CommandError::Syntax);
        };
        if is_word(word, "id") {
            id = Some(new_id(value)?);
        } else if is_word(word, "delay") {
            task.delay_ms = delay(value)?;
        } else if is_word(word, "maxtries") {
            let message = "ERR MAXTRIES must be zero or more";
            task.tries_max = Some(integer_at_least(value, 0, message)?);
        } else if is_word(word, "ttl") {
            task.ttl_ms = Some(time_to_live(value)?);
        } else if is_word(word, "group") {
            task.group = Some(group(value)?);
        } else if is_word(word, "traceparent") {
            traceparent = Some(traceparent_of(value)?);
        } else {
            return Err(CommandError::Syntax);
        }
        words = after;
    }
    Ok(NewTask {
        id,
        after: awaited,
        traceparent,
        spec: task,
    })
}

/// The ids of `n id [id …]`, each once, and the words after them.
///
/// # Errors
/// `Syntax` if there are fewer; `Text` for an invalid number or id.
fn awaited_ids(words: &[Bytes]) -> Result<(Vec<Bytes>, &[Bytes]), CommandError> {
    let (count, words) = words.split_first().ok_or(CommandError::Syntax)?;
    let count = integer(count)
        .ok()
        .and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| (1..=TASK_AFTER_MAX).contains(count));
    let count = count.ok_or_else(|| {
        CommandError::Text(
            format!("ERR number of ids after AFTER must be from 1 to {TASK_AFTER_MAX}").into(),
        )
    })?;
    let (named, words) = words.split_at_checked(count).ok_or(CommandError::Syntax)?;
    let mut ids = named.iter().map(new_id).collect::<Result<Vec<_>, _>>()?;
    ids.sort();
    ids.dedup();
    Ok((ids, words))
}

/// The name of a group.
///
/// # Errors
/// `Text` if it is empty or too long.
fn group(word: &Bytes) -> Result<Bytes, CommandError> {
    match word.len() {
        1..=TASK_GROUP_BYTES_MAX => Ok(word.clone()),
        _ => Err(CommandError::Text(
            format!("ERR name of a group must have 1 to {TASK_GROUP_BYTES_MAX} bytes").into(),
        )),
    }
}

/// The `traceparent` of the client that adds a task.
///
/// # Errors
/// `Text` if it is malformed.
fn traceparent_of(word: &Bytes) -> Result<Bytes, CommandError> {
    match is_task_traceparent(word) {
        true => Ok(word.clone()),
        false => Err(CommandError::text(
            "ERR TRACEPARENT must be version-traceid-parentid-flags in lowercase hexadecimal \
             digits, as W3C Trace Context defines it",
        )),
    }
}

/// What a consumer reports about its progress.
///
/// # Errors
/// `Text` if it is too long.
pub(super) fn progress_of(word: &Bytes) -> Result<Bytes, CommandError> {
    match word.len() {
        0..=TASK_PROGRESS_BYTES_MAX => Ok(word.clone()),
        _ => Err(CommandError::Text(
            format!("ERR progress has more than {TASK_PROGRESS_BYTES_MAX} bytes").into(),
        )),
    }
}

/// The words of TASK.ACK after the key.
#[derive(Debug)]
pub(super) struct Acknowledging<'a> {
    pub(super) ids: &'a [Bytes],
    /// The result of the only id.
    pub(super) result: Option<NewResult>,
    pub(super) token: Option<u64>,
}

impl<'a> Acknowledging<'a> {
    /// Reads `id [id …] [TOKEN token]` or `id RESULT value KEEP ms [TOKEN token]`.
    ///
    /// # Errors
    /// See [`ids`] and [`token`]; `Syntax` for a result of several ids; `Text` if the result is too large or not kept
    /// for a time.
    pub(super) fn parse(words: &'a [Bytes]) -> Result<Self, CommandError> {
        let [id, word, value, keep, time, after @ ..] = words else {
            return Self::without_result(words);
        };
        if !is_word(word, "result") {
            return Self::without_result(words);
        }
        if !is_word(keep, "keep") {
            return Err(CommandError::Syntax);
        }
        let token = last_token(after)?;
        if value.len() > TASK_RESULT_BYTES_MAX {
            return Err(CommandError::Text(
                format!("ERR result has more than {TASK_RESULT_BYTES_MAX} bytes").into(),
            ));
        }
        let too_small = "ERR KEEP is out of range, must be positive";
        let time_ms = integer_or(time, "ERR KEEP is not an integer or out of range")?;
        Ok(Self {
            ids: ids(std::slice::from_ref(id))?,
            result: Some(NewResult {
                value: value.clone(),
                keep_ms: milliseconds(time_ms, 1, too_small, || too_long("KEEP"))?,
            }),
            token,
        })
    }

    fn without_result(words: &'a [Bytes]) -> Result<Self, CommandError> {
        let (ids, token) = ids_and_token(words)?;
        Ok(Self {
            ids,
            result: None,
            token,
        })
    }
}

/// Reads how long to wait, with Redis's errors for timeouts. `None` means forever.
pub(super) fn timeout(word: &[u8]) -> Result<Option<Duration>, CommandError> {
    let time_ms = integer_or(word, "ERR timeout is not an integer or out of range")?;
    let time_ms = milliseconds(time_ms, 0, "ERR timeout is negative", || {
        CommandError::text("ERR timeout is out of range")
    })?;
    let time_ms = u64::try_from(time_ms).unwrap_or_default();
    Ok((time_ms > 0).then(|| Duration::from_millis(time_ms)))
}

/// A number of tasks; at most [`TASK_COUNT_MAX`].
///
/// # Errors
/// `Text` if the word is not a number of tasks.
pub(super) fn how_many(word: &[u8]) -> Result<usize, CommandError> {
    let message = "ERR COUNT is out of range, must be positive";
    Ok(to_usize(integer_at_least(word, 0, message)?).min(TASK_COUNT_MAX))
}

/// An id that a client has chosen.
///
/// # Errors
/// `Text` if it is not a valid id.
pub(super) fn new_id(word: &Bytes) -> Result<Bytes, CommandError> {
    if word.is_empty() || word.len() > TASK_ID_BYTES_MAX {
        return Err(CommandError::Text(
            format!("ERR task id must have 1 to {TASK_ID_BYTES_MAX} bytes").into(),
        ));
    }
    if is_keyword(word) {
        return Err(CommandError::text(
            "ERR task id cannot be the name of an option",
        ));
    }
    Ok(word.clone())
}

/// Whether a word cannot be a task's id because it names an option.
fn is_keyword(word: &[u8]) -> bool {
    TASK_ID_KEYWORDS
        .iter()
        .any(|keyword| is_word(word, keyword))
}

/// The ids of a command.
///
/// # Errors
/// `Syntax` if one of them names an option.
pub(super) fn ids(words: &[Bytes]) -> Result<&[Bytes], CommandError> {
    match words.iter().any(|word| is_keyword(word)) {
        true => Err(CommandError::Syntax),
        false => Ok(words),
    }
}

/// Why a task is given back. Cuts off a long text.
pub(super) fn reason(word: &Bytes) -> Bytes {
    let is_within = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    let end = word.len().min(TASK_REASON_BYTES_MAX);
    // Does not cut within a character, which has up to four bytes. The text need not be UTF-8.
    let between = |end: &usize| !word.get(*end).is_some_and(is_within);
    let whole = (0..4).map(|less| end.saturating_sub(less)).find(between);
    word.slice(..whole.unwrap_or(end))
}

/// The name of a consumer.
///
/// # Errors
/// `Text` if it is empty or too long.
fn worker(word: &Bytes) -> Result<Bytes, CommandError> {
    match word.len() {
        1..=TASK_WORKER_BYTES_MAX => Ok(word.clone()),
        _ => Err(CommandError::Text(
            format!("ERR name of a worker must have 1 to {TASK_WORKER_BYTES_MAX} bytes").into(),
        )),
    }
}

/// A state of tasks.
///
/// # Errors
/// `Syntax` if the word is not one.
pub(super) fn state(word: &[u8]) -> Result<TaskState, CommandError> {
    [
        TaskState::Ready,
        TaskState::Leased,
        TaskState::Delayed,
        TaskState::Dead,
        TaskState::Waiting,
    ]
    .into_iter()
    .find(|state| is_word(word, state.name()))
    .ok_or(CommandError::Syntax)
}

/// The ids of a command and the token after them: `id [id …] [TOKEN token]`.
///
/// # Errors
/// See [`ids`] and [`token`].
pub(super) fn ids_and_token(words: &[Bytes]) -> Result<(&[Bytes], Option<u64>), CommandError> {
    if let [named @ .., word, last] = words
        && !named.is_empty()
        && is_word(word, "token")
    {
        return Ok((ids(named)?, Some(token(last)?)));
    }
    Ok((ids(words)?, None))
}

/// The token of a lease that ends a command, if it has one.
///
/// # Errors
/// `Syntax` for other words; see [`token`].
pub(super) fn last_token(words: &[Bytes]) -> Result<Option<u64>, CommandError> {
    match words {
        [] => Ok(None),
        [word, value] if is_word(word, "token") => Ok(Some(token(value)?)),
        _ => Err(CommandError::Syntax),
    }
}

/// A token of a lease.
///
/// # Errors
/// `Text` if the word is not a token.
pub(super) fn token(word: &[u8]) -> Result<u64, CommandError> {
    let text = std::str::from_utf8(word).ok();
    text.filter(|text| text.len() == 16)
        .and_then(|text| u64::from_str_radix(text, 16).ok())
        .ok_or(CommandError::text("ERR lease token is not valid"))
}

/// The options of TASK.TAKE.
#[derive(Debug, Default)]
pub(super) struct Take {
    pub(super) count: Option<usize>,
    pub(super) having: Amounts,
    pub(super) lease_ms: Option<i64>,
    pub(super) worker: Option<Bytes>,
    /// How long to wait, if at all. The inner `None` means forever.
    pub(super) block: Option<Option<Duration>>,
}

impl Take {
    /// Reads `[COUNT n] [HAVING resource amount …] [LEASE ms [WORKER name]] [BLOCK ms]`. WORKER follows the lease, so a
    /// resource may have that name.
    ///
    /// # Errors
    /// `Syntax`, and those of each word.
    pub(super) fn parse(arguments: &[Bytes]) -> Result<Self, CommandError> {
        let mut take = Take::default();
        let mut words = rest(arguments, 2);
        while let Some((word, after)) = words.split_first() {
            if is_word(word, "having") && take.having.0.is_empty() {
                (take.having, words) = amounts(after, TASK_TAKE_KEYWORDS, Clause::Having)?;
                continue;
            }
            let Some((value, after)) = after.split_first() else {
                return Err(CommandError::Syntax);
            };
            if is_word(word, "count") {
                take.count = Some(how_many(value)?);
            } else if is_word(word, "lease") {
                take.lease_ms = Some(lease(value)?);
                if let [word, name, after @ ..] = after
                    && is_word(word, "worker")
                {
                    take.worker = Some(worker(name)?);
                    words = after;
                    continue;
                }
            } else if is_word(word, "block") {
                take.block = Some(timeout(value)?);
            } else {
                return Err(CommandError::Syntax);
            }
            words = after;
        }
        Ok(take)
    }
}
