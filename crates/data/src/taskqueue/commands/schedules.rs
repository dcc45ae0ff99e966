//! TASK.SCHEDULE, TASK.UNSCHEDULE, TASK.SCHEDULES.

use bytes::Bytes;

use super::arguments::{milliseconds, new_task, too_long};
use super::read::{at_ms, note, text};
use crate::command::arguments::{
    INVALID_CURSOR, ListOptions, argument, integer_or, is_word, list_reply, rest,
};
use crate::error::CommandError;
use crate::taskqueue::add::NewTask;
use crate::taskqueue::resources::Amounts;
use crate::taskqueue::schedules::{self, NewSchedule};
use crate::taskqueue::{TaskQueue, endings, moments};
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_base::limits::{
    TASK_CRON_BYTES_MAX, TASK_EVERY_MS_MIN, TASK_SCHEDULE_NAME_BYTES_MAX,
    TASK_SCHEDULE_PAYLOAD_BYTES_MAX,
};
use quoin_layout::{TaskMissed, TaskSchedule, TaskSpec, TaskTiming, ValueType};
use quoin_resp::reply::Reply;

/// The values of MISSED.
const MISSED: [(&str, TaskMissed); 3] = [
    ("once", TaskMissed::Once),
    ("all", TaskMissed::All),
    ("skip", TaskMissed::Skip),
];

/// `TASK.SCHEDULE key name CRON expression [TZ zone]|EVERY ms [MISSED ONCE|ALL|SKIP] TASK priority payload
/// [NEEDS resource amount …] [DELAY ms] [MAXTRIES n] [TTL ms] [UNIQUE token ms] [GROUP name]` → the next moment, or −1 if
/// the schedule is paused.
pub(super) async fn schedule(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (name, schedule) = (argument(arguments, 1)?, argument(arguments, 2)?);
    check_name(schedule)?;
    let new = parse(rest(arguments, 3), context.now_ms)?;
    let mut key = context.find_or_create(name, ValueType::TaskQueue).await?;
    let next_ms = schedules::set(context, &mut key, schedule, new).await?;
    context.notify(EventClasses::MODULE, "task.schedule", name);
    Ok(at_ms(next_ms))
}

fn check_name(name: &[u8]) -> Result<(), CommandError> {
    match name.len() {
        1..=TASK_SCHEDULE_NAME_BYTES_MAX => Ok(()),
        _ => Err(CommandError::Text(
            format!("ERR name of a schedule must have 1 to {TASK_SCHEDULE_NAME_BYTES_MAX} bytes")
                .into(),
        )),
    }
}

/// The words after the name of a schedule.
///
/// # Errors
/// `Syntax`, and those of each word; `Text` if the schedule has no moment.
fn parse(mut words: &[Bytes], now_ms: i64) -> Result<NewSchedule, CommandError> {
    let (mut expression, mut zone, mut every_ms, mut missed) = (None, None, None, None);
    let task = loop {
        let [word, value, after @ ..] = words else {
            return Err(CommandError::Syntax);
        };
        words = after;
        if is_word(word, "task") {
            let Some((payload, after)) = after.split_first() else {
                return Err(CommandError::Syntax);
            };
            break scheduled(new_task(value, payload, after)?)?;
        }
        let is_again = if is_word(word, "cron") {
            expression.replace(cron(value)?).is_some()
        } else if is_word(word, "tz") {
            let name = moments::zone_name(value)?;
            zone.replace(Bytes::from(name)).is_some()
        } else if is_word(word, "every") {
            every_ms.replace(every(value)?).is_some()
        } else if is_word(word, "missed") {
            let value = MISSED.iter().find(|(name, _)| is_word(value, name));
            let (_, value) = value.ok_or(CommandError::Syntax)?;
            missed.replace(*value).is_some()
        } else {
            true
        };
        if is_again {
            return Err(CommandError::Syntax);
        }
    };
    let timing = match (expression, zone, every_ms) {
        (Some(expression), zone, None) => TaskTiming::Cron {
            expression,
            zone: zone.unwrap_or(Bytes::from_static(b"UTC")),
        },
        (None, None, Some(every_ms)) => TaskTiming::Every {
            every_ms,
            from_ms: now_ms,
        },
        _ => return Err(CommandError::Syntax),
    };
    Ok(NewSchedule {
        first_ms: moments::first_after(&timing, now_ms)?,
        timing,
        missed: missed.unwrap_or(TaskMissed::Once),
        task,
    })
}

fn cron(word: &Bytes) -> Result<Bytes, CommandError> {
    match word.len() {
        0..=TASK_CRON_BYTES_MAX => Ok(word.clone()),
        _ => Err(CommandError::Text(
            format!("ERR cron expression has more than {TASK_CRON_BYTES_MAX} bytes").into(),
        )),
    }
}

fn every(word: &[u8]) -> Result<i64, CommandError> {
    let too_small = "ERR EVERY is out of range, must be at least 1000 milliseconds";
    let time_ms = integer_or(word, "ERR EVERY is not an integer or out of range")?;
    milliseconds(time_ms, TASK_EVERY_MS_MIN, too_small, || too_long("EVERY"))
}

/// The task of a schedule. A schedule chooses the ids itself, so the task cannot name others to
/// wait for. Its tasks do not share a trace.
fn scheduled(task: NewTask) -> Result<TaskSpec, CommandError> {
    let NewTask {
        id,
        after,
        traceparent,
        spec,
    } = task;
    if id.is_some() || !after.is_empty() || traceparent.is_some() {
        return Err(CommandError::Syntax);
    }
    if spec.payload.len() > TASK_SCHEDULE_PAYLOAD_BYTES_MAX {
        return Err(CommandError::Text(
            format!(
                "ERR payload of a schedule has more than {TASK_SCHEDULE_PAYLOAD_BYTES_MAX} bytes"
            )
            .into(),
        ));
    }
    Ok(spec)
}

/// `TASK.UNSCHEDULE key name [name …]` → the number of schedules removed.
pub(super) async fn unschedule(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(mut key) = context.find(name, ValueType::TaskQueue).await? else {
        return Ok(Reply::Integer(0));
    };
    let mut removed = 0;
    for schedule in rest(arguments, 2) {
        removed += i64::from(schedules::remove(context, &key, schedule).await?);
    }
    if removed > 0 {
        context.notify(EventClasses::MODULE, "task.unschedule", name);
        endings::remove_if_forgotten(context, &mut key).await?;
    }
    Ok(Reply::Integer(removed))
}

/// `TASK.SCHEDULES key [CURSOR cursor] [COUNT n]` → the next cursor, and schedules.
pub(super) async fn list(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let options = ListOptions::parse(rest(arguments, 2))?;
    if { options.after.as_ref() }.is_some_and(|name| check_name(name).is_err()) {
        return Err(INVALID_CURSOR);
    }
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::TaskQueue).await? else {
        return Ok(list_reply(None, Reply::Array(Vec::new())));
    };
    let queue = TaskQueue::open(context, &key);
    let listed = queue.schedules(options.after.as_deref(), options.count);
    let (found, next) = listed.await?;
    let found = found.into_iter().map(|(name, found)| shown(name, found));
    let found = Reply::Array(found.collect());
    Ok(list_reply(next.as_deref(), found))
}

/// A schedule for clients; null for words that were not said.
fn shown(name: Bytes, schedule: TaskSchedule) -> Reply {
    let (cron, zone, every_ms) = match schedule.timing {
        TaskTiming::Cron { expression, zone } => (Some(expression), Some(zone), None),
        TaskTiming::Every { every_ms, .. } => (None, None, Some(every_ms)),
    };
    let missed = MISSED.iter().find(|(_, value)| *value == schedule.missed);
    let number = |number: Option<i64>| number.map_or(Reply::Null, Reply::Integer);
    let TaskSpec {
        priority,
        needs,
        delay_ms,
        tries_max,
        ttl_ms,
        unique,
        group,
        payload,
    } = schedule.task;
    let unique = unique.map(|unique| (unique.token, unique.window_ms));
    let (token, window_ms) = unique.unzip();
    let error = Some(schedule.error).filter(|error| !error.is_empty());
    Reply::Map(vec![
        (text("name"), Reply::Bulk(name)),
        (text("cron"), note(cron)),
        (text("tz"), note(zone)),
        (text("every-ms"), number(every_ms)),
        (
            text("missed"),
            text(missed.map_or("once", |(name, _)| name)),
        ),
        (
            text("paused"),
            Reply::Integer(i64::from(schedule.next_ms == 0)),
        ),
        (text("next-ms"), at_ms(schedule.next_ms)),
        (text("last-ms"), at_ms(schedule.last_ms)),
        (text("error"), note(error)),
        (text("priority"), Reply::Double(priority)),
        (text("payload"), Reply::Bulk(payload)),
        (text("needs"), super::amounts(&Amounts(needs))),
        (text("delay-ms"), Reply::Integer(delay_ms)),
        (text("maxtries"), number(tries_max)),
        (text("ttl-ms"), number(ttl_ms)),
        (text("unique"), note(token)),
        (text("unique-ms"), number(window_ms)),
        (text("group"), note(group)),
    ])
}
