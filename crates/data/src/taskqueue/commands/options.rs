//! TASK.SETOPTIONS, TASK.GETOPTIONS.

use bytes::Bytes;

use super::existing;
use crate::command::arguments::{argument, integer, is_word, rest};
use crate::error::CommandError;
use crate::taskqueue::TaskQueue;
use crate::taskqueue::options::{
    self, DEAD_LETTER, NUMBERS, NumberOption, OVERFLOW, OVERFLOWS, RATE, RATE_MAX, RATE_PERIOD,
};
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_base::limits::TASK_DEAD_LETTER_BYTES_MAX;
use quoin_layout::{TaskNumber, TaskOptions, ValueType};
use quoin_resp::reply::Reply;

/// What a command sets. `None` leaves an option unchanged.
#[derive(Default)]
struct Setting {
    numbers: Vec<(TaskNumber, i64)>,
    /// The inner `None` means no such queue.
    dead_letter: Option<Option<Bytes>>,
}

impl Setting {
    /// Reads `option value [option value …]`.
    ///
    /// # Errors
    /// `Syntax` for an unknown or repeated option. `Text` for an invalid value.
    fn parse(mut words: &[Bytes]) -> Result<Self, CommandError> {
        let mut setting = Self::default();
        while let [word, value, after @ ..] = words {
            words = after;
            if is_word(word, DEAD_LETTER) && setting.dead_letter.is_none() {
                setting.dead_letter = Some(dead_letter(value)?);
                continue;
            }
            if is_word(word, RATE) && !setting.sets(TaskNumber::RateMax) {
                let Some((period, after)) = after.split_first() else {
                    return Err(CommandError::Syntax);
                };
                words = after;
                let max = number(&RATE_MAX, value)?;
                let period_ms = number(&RATE_PERIOD, period)?;
                if (max == 0) != (period_ms == 0) {
                    return Err(CommandError::text(
                        "ERR RATE must have two positive numbers, or 0 twice",
                    ));
                }
                let rate = [(RATE_MAX.number, max), (RATE_PERIOD.number, period_ms)];
                setting.numbers.extend(rate);
                continue;
            }
            let set = if is_word(word, OVERFLOW) {
                let values = OVERFLOWS.iter();
                let values = values.zip(0..).find(|(name, _)| is_word(value, name));
                let (_, number) = values.ok_or(CommandError::Syntax)?;
                (TaskNumber::DropsOldest, number)
            } else {
                let option = NUMBERS.iter().find(|option| is_word(word, option.name));
                let option = option.ok_or(CommandError::Syntax)?;
                (option.number, number(option, value)?)
            };
            if setting.sets(set.0) {
                return Err(CommandError::Syntax);
            }
            setting.numbers.push(set);
        }
        match words {
            [] => Ok(setting),
            _ => Err(CommandError::Syntax),
        }
    }

    fn sets(&self, number: TaskNumber) -> bool {
        self.numbers.iter().any(|(known, _)| *known == number)
    }

    fn apply(self, options: &mut TaskOptions) {
        for (number, value) in self.numbers {
            options.set_number(number, value);
        }
        if let Some(dead_letter) = self.dead_letter {
            options.dead_letter = dead_letter;
        }
    }
}

fn number(option: &NumberOption, word: &[u8]) -> Result<i64, CommandError> {
    let value = integer(word).ok();
    let value = value.filter(|value| (0..=option.max).contains(value));
    value.ok_or_else(|| {
        let (name, max) = (option.name.to_ascii_uppercase(), option.max);
        CommandError::Text(format!("ERR {name} must be an integer from 0 to {max}").into())
    })
}

fn dead_letter(word: &Bytes) -> Result<Option<Bytes>, CommandError> {
    if word.len() > TASK_DEAD_LETTER_BYTES_MAX {
        return Err(CommandError::Text(
            format!("ERR DEADLETTER is longer than {TASK_DEAD_LETTER_BYTES_MAX} bytes").into(),
        ));
    }
    Ok((!word.is_empty()).then(|| word.clone()))
}

/// `TASK.SETOPTIONS key option value [option value …]` → OK. Other options stay.
pub(super) async fn set(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let setting = Setting::parse(rest(arguments, 2))?;
    if let Some(Some(letter)) = &setting.dead_letter {
        if letter == name {
            return Err(CommandError::text(
                "ERR DEADLETTER must be another key than the queue's",
            ));
        }
        context.find(letter, ValueType::TaskQueue).await?;
    }
    let mut key = context.find_or_create(name, ValueType::TaskQueue).await?;
    options::change(context, &mut key, |options| setting.apply(options)).await?;
    context.notify(EventClasses::MODULE, "task.setoptions", name);
    context.remove_if_empty(&key).await?;
    Ok(Reply::OK)
}

/// `TASK.GETOPTIONS key` → the options as TASK.SETOPTIONS takes them.
pub(super) async fn get(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let key = existing(context, name).await?;
    let options = TaskQueue::open(context, &key).options().await?;
    let text = |text: &'static str| Reply::bulk(Bytes::from_static(text.as_bytes()));
    let numbers = NUMBERS.iter();
    let numbers = numbers.map(|option| {
        let value = options.number(option.number);
        (text(option.name), Reply::Integer(value))
    });
    let mut fields: Vec<_> = numbers.collect();
    let overflow = match options.number(TaskNumber::DropsOldest) {
        0 => OVERFLOWS[0],
        _ => OVERFLOWS[1],
    };
    fields.push((text(OVERFLOW), text(overflow)));
    let rate = [&RATE_MAX, &RATE_PERIOD].map(|part| Reply::Integer(options.number(part.number)));
    fields.push((text(RATE), Reply::Array(rate.to_vec())));
    let dead_letter = options.dead_letter.unwrap_or_default();
    fields.push((text(DEAD_LETTER), Reply::Bulk(dead_letter)));
    Ok(Reply::Map(fields))
}
