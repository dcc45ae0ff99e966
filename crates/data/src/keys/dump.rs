//! DUMP and RESTORE.

use bytes::Bytes;
use quoin_base::events::EventClasses;
use quoin_resp::reply::Reply;

use crate::command::arguments::{argument, integer, is_word, rest};
use crate::error::CommandError;
use crate::unit::context::{ReadContext, WriteContext};

/// `DUMP key` → the value in Redis's serialization, or null if there is no key.
pub(super) async fn dump(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let Some(key) = context.find_any(argument(arguments, 1)?).await? else {
        return Ok(Reply::Null);
    };
    let payload = context.dump(&key).await?;
    Ok(payload.map_or(Reply::Null, Reply::Bulk))
}

/// `RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]` → OK.
///
/// If the time to live is already over, no key remains and the reply is still OK.
pub(super) async fn restore(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let options = Options::parse(rest(arguments, 4))?;
    let name = argument(arguments, 1)?;
    let old = context.find_any(name).await?;
    if old.is_some() && !options.replace {
        return Err(CommandError::text(
            "BUSYKEY Target key name already exists.",
        ));
    }
    let ttl_ms = integer(argument(arguments, 2)?)?;
    if ttl_ms < 0 {
        return Err(CommandError::text("ERR Invalid TTL value, must be >= 0"));
    }
    let expire_at_ms = match ttl_ms {
        0 => None,
        at_ms if options.is_absolute => Some(at_ms),
        // In Redis the sum overflows, and the key expires immediately.
        ttl_ms => Some(context.now_ms.saturating_add(ttl_ms)),
    };
    let value = context.restorable(quoin_rdb::open(argument(arguments, 3)?)?)?;
    if let Some(old) = &old {
        context.remove(old);
    }
    if expire_at_ms.is_none_or(|at_ms| at_ms > context.now_ms) {
        context.restore(name, value, expire_at_ms).await?;
        context.notify(EventClasses::GENERIC, "restore", name);
    } else if old.is_some() {
        context.notify(EventClasses::GENERIC, "del", name);
    }
    Ok(Reply::OK)
}

struct Options {
    replace: bool,
    is_absolute: bool,
}

impl Options {
    /// IDLETIME and FREQ are validated as in Redis but have no effect, because nothing is evicted.
    fn parse(mut words: &[Bytes]) -> Result<Self, CommandError> {
        let mut options = Self {
            replace: false,
            is_absolute: false,
        };
        let mut has_idle_time = false;
        let mut has_frequency = false;
        loop {
            words = match words {
                [] => return Ok(options),
                [word, behind @ ..] if is_word(word, "replace") => {
                    options.replace = true;
                    behind
                }
                [word, behind @ ..] if is_word(word, "absttl") => {
                    options.is_absolute = true;
                    behind
                }
                [word, seconds, behind @ ..] if is_word(word, "idletime") && !has_frequency => {
                    if integer(seconds)? < 0 {
                        return Err(CommandError::text(
                            "ERR Invalid IDLETIME value, must be >= 0",
                        ));
                    }
                    has_idle_time = true;
                    behind
                }
                [word, frequency, behind @ ..] if is_word(word, "freq") && !has_idle_time => {
                    if !(0..=255).contains(&integer(frequency)?) {
                        return Err(CommandError::text(
                            "ERR Invalid FREQ value, must be >= 0 and <= 255",
                        ));
                    }
                    has_frequency = true;
                    behind
                }
                _ => return Err(CommandError::Syntax),
            };
        }
    }
}
