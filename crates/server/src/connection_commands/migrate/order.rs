//! The arguments of MIGRATE.

use std::time::Duration;

use bytes::Bytes;

use quoin_data::command::arguments::{argument, integer, is_word};
use quoin_data::error::CommandError;

/// The timeout if none is given (Redis).
const TIMEOUT_DEFAULT_MS: u64 = 1_000;

/// What is to be done.
pub(super) struct Order<'a> {
    pub(super) host: &'a Bytes,
    pub(super) port: &'a Bytes,
    pub(super) database: i64,
    pub(super) timeout: Duration,
    pub(super) copies: bool,
    pub(super) replaces: bool,
    pub(super) user: Option<&'a Bytes>,
    pub(super) password: Option<&'a Bytes>,
    pub(super) keys: &'a [Bytes],
}

/// Reads the arguments.
pub(super) fn parse(arguments: &[Bytes]) -> Result<Order<'_>, CommandError> {
    let key = std::slice::from_ref(argument(arguments, 3)?);
    let mut order = Order {
        host: argument(arguments, 1)?,
        port: argument(arguments, 2)?,
        database: 0,
        timeout: Duration::ZERO,
        copies: false,
        replaces: false,
        user: None,
        password: None,
        keys: key,
    };
    let mut options = arguments.get(6..).unwrap_or_default();
    loop {
        options = match options {
            [] => break,
            [word, others @ ..] if is_word(word, "copy") => {
                order.copies = true;
                others
            }
            [word, others @ ..] if is_word(word, "replace") => {
                order.replaces = true;
                others
            }
            [word, password, others @ ..] if is_word(word, "auth") => {
                order.password = Some(password);
                others
            }
            [word, user, password, others @ ..] if is_word(word, "auth2") => {
                (order.user, order.password) = (Some(user), Some(password));
                others
            }
            [word, others @ ..] if is_word(word, "keys") => {
                if !argument(arguments, 3)?.is_empty() {
                    return Err(CommandError::text(
                        "ERR When using MIGRATE KEYS option, the key argument must be set to the \
                         empty string",
                    ));
                }
                order.keys = others;
                break;
            }
            _ => return Err(CommandError::Syntax),
        };
    }
    let timeout_ms = integer(argument(arguments, 5)?)?;
    order.database = integer(argument(arguments, 4)?)?;
    let timeout_ms = u64::try_from(timeout_ms).ok().filter(|ms| *ms > 0);
    order.timeout = Duration::from_millis(timeout_ms.unwrap_or(TIMEOUT_DEFAULT_MS));
    Ok(order)
}
