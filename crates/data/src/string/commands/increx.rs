//! INCREX.

use bytes::Bytes;

use super::set::Expiry;
use crate::command::arguments::{argument, integer, is_word, rest};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::string::{self, StringValue, StringValueMut};
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_base::number::{LongDouble, parse_i64};
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `INCREX key [BYINT increment|BYFLOAT increment] [LBOUND bound] [UBOUND bound] [SATURATE] [EX seconds|PX ms|EXAT time|PXAT time-ms|PERSIST] [ENX]`
/// → the new number, and the amount added. If the new number exceeds a bound, it is refused and
/// nothing changes. With SATURATE it becomes the bound.
pub(super) async fn increx(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let options = Options::parse(rest(arguments, 2))?;
    match options.by {
        Some((By::Float, _)) => {
            let increment = Increment::of_floats(&options)?;
            run(context, arguments, &options, increment).await
        }
        _ => {
            let increment = Increment::of_integers(&options)?;
            run(context, arguments, &options, increment).await
        }
    }
}

async fn run<N: Number>(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    options: &Options<'_>,
    increment: Increment<N>,
) -> Result<Reply, CommandError> {
    let expiry = match options.expiry {
        Expiry::At(form, text) => Some((form, form.read(text, context.now_ms, "increx")?)),
        _ => None,
    };
    let name = argument(arguments, 1)?;
    let found = context.find(name, ValueType::String).await?;
    let old = match &found {
        Some(key) => N::read(&StringValue::open(context, key).get().await?)?,
        None => N::ZERO,
    };
    let answer = |new: N, added: N| Reply::Array(vec![new.reply(), added.reply()]);
    let new = match increment.add(old) {
        Sum::Within(new) => new,
        Sum::Beyond(bound) if options.saturates => bound,
        Sum::Beyond(_) => return Ok(answer(old, N::ZERO)),
    };
    let added = new.minus(old)?;
    let old_expiry = found.as_ref().and_then(|key| key.meta.expire_at_ms);
    let is_kept = options.only_without_expiry && old_expiry.is_some();
    let new_expiry = expiry.filter(|_| !is_kept);
    if let Some((form, at_ms)) = new_expiry
        && form.is_absolute()
        && at_ms <= context.now_ms
    {
        if let Some(key) = &found {
            context.remove(key);
            context.notify(EventClasses::GENERIC, "del", name);
        }
        return Ok(answer(new, added));
    }
    let removes_expiry = matches!(options.expiry, Expiry::Removed);
    let expire_at_ms = match new_expiry {
        Some((_, at_ms)) => Some(at_ms),
        None => old_expiry.filter(|_| !removes_expiry),
    };
    put(context, name, found, &new.text().into(), expire_at_ms).await?;
    context.notify(EventClasses::STRING, N::EVENT, name);
    if new_expiry.is_some() {
        context.notify(EventClasses::GENERIC, "expire", name);
    } else if removes_expiry && old_expiry.is_some() {
        context.notify(EventClasses::GENERIC, "persist", name);
    }
    Ok(answer(new, added))
}

async fn put(
    context: &WriteContext<'_>,
    name: &Bytes,
    found: Option<OpenKey>,
    value: &Bytes,
    expire_at_ms: Option<i64>,
) -> Result<(), CommandError> {
    let Some(mut key) = found else {
        return string::set(context, name, value, expire_at_ms)
            .await
            .map(drop);
    };
    StringValueMut::open(context, &mut key)
        .replace(value)
        .await?;
    if key.meta.expire_at_ms != expire_at_ms {
        context.set_expiry(&mut key, expire_at_ms);
    }
    Ok(())
}

enum By {
    Integer,
    Float,
}

/// The options. Each may be given once.
#[derive(Default)]
struct Options<'a> {
    by: Option<(By, &'a Bytes)>,
    lower: Option<&'a Bytes>,
    upper: Option<&'a Bytes>,
    saturates: bool,
    expiry: Expiry<'a>,
    /// ENX.
    only_without_expiry: bool,
}

impl<'a> Options<'a> {
    fn parse(mut words: &'a [Bytes]) -> Result<Self, CommandError> {
        let mut options = Self::default();
        while let [option, after @ ..] = words {
            words = match options.take_flag(option) {
                true => after,
                false => options.take_valued(words)?,
            };
        }
        match options.expiry {
            Expiry::Removed if options.only_without_expiry => Err(CommandError::Syntax),
            Expiry::Unsaid if options.only_without_expiry => {
                Err(CommandError::text("ERR ENX flag requires an expiration"))
            }
            _ => Ok(options),
        }
    }

    /// Takes an option without a value. Returns whether the word is such an option and was not
    /// given before.
    fn take_flag(&mut self, option: &[u8]) -> bool {
        if is_word(option, "saturate") && !self.saturates {
            self.saturates = true;
        } else if is_word(option, "enx") && !self.only_without_expiry {
            self.only_without_expiry = true;
        } else if is_word(option, "persist") && matches!(self.expiry, Expiry::Unsaid) {
            self.expiry = Expiry::Removed;
        } else {
            return false;
        }
        true
    }

    fn take_valued(&mut self, words: &'a [Bytes]) -> Result<&'a [Bytes], CommandError> {
        let [option, value, after @ ..] = words else {
            return Err(CommandError::Syntax);
        };
        if is_word(option, "byint") && self.by.is_none() {
            self.by = Some((By::Integer, value));
        } else if is_word(option, "byfloat") && self.by.is_none() {
            self.by = Some((By::Float, value));
        } else if is_word(option, "lbound") && self.lower.is_none() {
            self.lower = Some(value);
        } else if is_word(option, "ubound") && self.upper.is_none() {
            self.upper = Some(value);
        } else if matches!(self.expiry, Expiry::Unsaid) {
            return self.expiry.take(words).ok_or(CommandError::Syntax);
        } else {
            return Err(CommandError::Syntax);
        }
        Ok(after)
    }
}

/// What is added, and the bounds of the sum.
struct Increment<N> {
    by: N,
    lower: N,
    upper: N,
}

enum Sum<N> {
    Within(N),
    /// It exceeds this bound.
    Beyond(N),
}

impl Increment<i64> {
    fn of_integers(options: &Options<'_>) -> Result<Self, CommandError> {
        let read = |name: &str, text: Option<&Bytes>, default: i64| match text {
            Some(text) => parse_i64(text).ok_or_else(|| {
                let line = format!("ERR {name} is not an integer or out of range");
                CommandError::Text(line.into())
            }),
            None => Ok(default),
        };
        let by = options.by.as_ref().map(|(_, text)| *text);
        Self {
            by: read("Increment", by, 1)?,
            lower: read("LBOUND", options.lower, i64::MIN)?,
            upper: read("UBOUND", options.upper, i64::MAX)?,
        }
        .checked()
    }
}

impl Increment<LongDouble> {
    fn of_floats(options: &Options<'_>) -> Result<Self, CommandError> {
        let read = |name: &str, text: Option<&Bytes>, default: LongDouble| match text {
            Some(text) => LongDouble::parse(text).ok_or_else(|| {
                let line = format!("ERR {name} is not a valid float");
                CommandError::Text(line.into())
            }),
            None => Ok(default),
        };
        let by = options.by.as_ref().map(|(_, text)| *text);
        let by = read("Increment", by, LongDouble::ZERO)?;
        if !by.is_finite() {
            return Err(CommandError::text(
                "ERR BYFLOAT increment cannot be Infinity",
            ));
        }
        Self {
            by,
            lower: read("LBOUND", options.lower, LongDouble::MIN)?,
            upper: read("UBOUND", options.upper, LongDouble::MAX)?,
        }
        .checked()
    }
}

impl<N: Number> Increment<N> {
    fn checked(self) -> Result<Self, CommandError> {
        match self.lower.exceeds(self.upper) {
            true => Err(CommandError::text(
                "ERR LBOUND can't be greater than UBOUND",
            )),
            false => Ok(self),
        }
    }

    fn add(&self, old: N) -> Sum<N> {
        old.plus(self.by, self.lower, self.upper)
    }
}

/// The numbers of one mode.
trait Number: Copy {
    const ZERO: Self;
    const EVENT: &'static str;

    fn read(text: &[u8]) -> Result<Self, CommandError>;
    fn text(self) -> String;
    fn reply(self) -> Reply;
    fn exceeds(self, other: Self) -> bool;
    fn plus(self, increment: Self, lower: Self, upper: Self) -> Sum<Self>;
    /// The difference, if it is a number of this mode.
    fn minus(self, other: Self) -> Result<Self, CommandError>;
}

impl Number for i64 {
    const ZERO: Self = 0;
    const EVENT: &'static str = "incrby";

    fn read(text: &[u8]) -> Result<Self, CommandError> {
        integer(text)
    }

    fn text(self) -> String {
        self.to_string()
    }

    fn reply(self) -> Reply {
        Reply::Integer(self)
    }

    fn exceeds(self, other: Self) -> bool {
        self > other
    }

    fn plus(self, increment: Self, lower: Self, upper: Self) -> Sum<Self> {
        match self.checked_add(increment) {
            Some(sum) if sum > upper => Sum::Beyond(upper),
            Some(sum) if sum < lower => Sum::Beyond(lower),
            Some(sum) => Sum::Within(sum),
            None if increment > 0 => Sum::Beyond(upper),
            None => Sum::Beyond(lower),
        }
    }

    fn minus(self, other: Self) -> Result<Self, CommandError> {
        self.checked_sub(other)
            .ok_or(CommandError::text("ERR applied increment would overflow"))
    }
}

impl Number for LongDouble {
    const ZERO: Self = LongDouble::ZERO;
    const EVENT: &'static str = "incrbyfloat";

    fn read(text: &[u8]) -> Result<Self, CommandError> {
        match LongDouble::parse(text).ok_or(CommandError::NotAFloat)? {
            number if number.is_finite() => Ok(number),
            _ => Err(CommandError::text("ERR value cannot be Infinity")),
        }
    }

    fn text(self) -> String {
        self.to_string()
    }

    fn reply(self) -> Reply {
        Reply::Decimal(self)
    }

    fn exceeds(self, other: Self) -> bool {
        LongDouble::exceeds(&self, &other)
    }

    fn plus(self, increment: Self, lower: Self, upper: Self) -> Sum<Self> {
        // The sum may be infinite, which exceeds any bound.
        let sum = self + increment;
        if LongDouble::exceeds(&sum, &upper) {
            Sum::Beyond(upper)
        } else if LongDouble::exceeds(&lower, &sum) {
            Sum::Beyond(lower)
        } else {
            Sum::Within(sum)
        }
    }

    fn minus(self, other: Self) -> Result<Self, CommandError> {
        match self - other {
            difference if difference.is_finite() && self.is_finite() => Ok(difference),
            _ => Err(CommandError::text(
                "ERR increment would produce NaN or Infinity",
            )),
        }
    }
}
