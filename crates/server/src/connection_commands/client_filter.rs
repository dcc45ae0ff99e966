//! Which clients CLIENT KILL and CLIENT LIST select: the options of Redis 7.4 and of Valkey 9, and
//! their negations.

use std::collections::HashSet;
use std::mem::discriminant;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::addresses::Endpoint;
use crate::clients::{ClientRecord, flags_of};
use crate::connection_commands::shared::{lossy_text, refusal};
use crate::state::ServerState;
use quoin_acl::User;
use quoin_base::number::parse_i64;
use quoin_data::command::arguments::{integer_at_least, is_word};
use quoin_data::error::CommandError;

/// Flags that clients of Redis and Valkey can have.
const FLAGS: &[u8] = b"AbBcdeiIMNOPrRStTuUx";

/// The capability to follow a redirection.
const REDIRECT: u8 = b'r';

/// Clients that match all conditions.
#[derive(Debug, Default)]
pub(super) struct Filter<'a> {
    conditions: Vec<Condition<'a>>,
    /// Whether to leave out the client that asks. `None` if not specified.
    pub(super) spares_caller: Option<bool>,
}

#[derive(Debug)]
struct Condition<'a> {
    test: Test<'a>,
    is_negated: bool,
}

#[derive(Debug)]
enum Test<'a> {
    Ids(HashSet<u64>),
    Type(ClientType),
    Address(&'a [u8]),
    LocalAddress(&'a [u8]),
    /// The address without the port.
    Ip(&'a [u8]),
    User(Arc<User>),
    Name(&'a [u8]),
    LibraryName(&'a [u8]),
    LibraryVersion(&'a [u8]),
    Database(u32),
    /// All of these flags.
    Flags(&'a [u8]),
    /// All of these capabilities (CLIENT CAPA).
    Capabilities(&'a [u8]),
    /// Connected at this time, in seconds since the Unix epoch, or before.
    ConnectedBy(i64),
    /// Silent since this time, in seconds since the Unix epoch, or before.
    SilentBy(i64),
}

impl<'a> Filter<'a> {
    /// The client with this address.
    pub(super) fn of_address(address: &'a [u8]) -> Self {
        let mut filter = Self::default();
        filter.put(Test::Address(address), false);
        filter
    }

    /// Reads options. A repeated option replaces the earlier one.
    ///
    /// # Errors
    /// Those of Redis and Valkey.
    pub(super) fn parse(
        mut options: &'a [Bytes],
        state: &ServerState,
    ) -> Result<Self, CommandError> {
        let mut filter = Self::default();
        while let [option, values @ ..] = options {
            let [value, after @ ..] = values else {
                return Err(CommandError::Syntax);
            };
            options = after;
            let (name, is_negated) = without_not(option);
            if is_word(name, "id") {
                let count = filter.put_ids(values, is_negated)?;
                options = values.get(count..).unwrap_or_default();
            } else if !is_negated && is_word(name, "skipme") {
                filter.spares_caller = Some(yes_or_no(value)?);
            } else {
                let test = Test::parse(name, is_negated, value, state)?;
                filter.put(test, is_negated);
            }
        }
        Ok(filter)
    }

    fn put(&mut self, test: Test<'a>, is_negated: bool) {
        let is_other = |one: &Condition<'_>| {
            one.is_negated != is_negated || discriminant(&one.test) != discriminant(&test)
        };
        self.conditions.retain(is_other);
        self.conditions.push(Condition { test, is_negated });
    }

    /// Takes an id, and all ids after it. Returns how many there are.
    fn put_ids(&mut self, values: &[Bytes], is_negated: bool) -> Result<usize, CommandError> {
        const MESSAGE: &str = "ERR client-id should be greater than 0";
        let id = |value: &Bytes| {
            let id = integer_at_least(value, 1, MESSAGE)?;
            Ok(id.unsigned_abs())
        };
        // The first value must be an id. A later value that is not one ends the list.
        let others = values.iter().skip(1);
        let count = 1 + others
            .take_while(|value| parse_i64(value).is_some())
            .count();
        let ids: Result<_, CommandError> = values.iter().take(count).map(id).collect();
        self.put(Test::Ids(ids?), is_negated);
        Ok(count)
    }

    /// Whether all conditions apply to a client.
    pub(super) fn matches(&self, client: &ClientRecord) -> bool {
        let applies = |one: &Condition<'_>| one.test.applies(client) != one.is_negated;
        self.conditions.iter().all(applies)
    }
}

/// Whether a word is an option.
pub(super) fn is_option(word: &[u8]) -> bool {
    const BOTH: [&str; 12] = [
        "id", "type", "addr", "laddr", "ip", "user", "name", "lib-name", "lib-ver", "db", "flags",
        "capa",
    ];
    let (name, is_negated) = without_not(word);
    let is_one_of = |names: &[&str]| names.iter().any(|one| is_word(name, one));
    is_one_of(&BOTH) || !is_negated && is_one_of(&["skipme", "maxage", "idle"])
}

/// The name of an option, and whether it is negated.
fn without_not(option: &[u8]) -> (&[u8], bool) {
    match option.split_at_checked(4) {
        Some((not, name)) if is_word(not, "not-") => (name, true),
        _ => (option, false),
    }
}

fn yes_or_no(value: &[u8]) -> Result<bool, CommandError> {
    if is_word(value, "yes") {
        Ok(true)
    } else if is_word(value, "no") {
        Ok(false)
    } else {
        Err(CommandError::Syntax)
    }
}

impl<'a> Test<'a> {
    fn parse(
        name: &[u8],
        is_negated: bool,
        value: &'a Bytes,
        state: &ServerState,
    ) -> Result<Self, CommandError> {
        let before_s = |what: &str| -> Result<i64, CommandError> {
            let age_s = positive(value, what)?;
            Ok((state.clock.now_ms() / 1000).saturating_sub(age_s))
        };
        Ok(if is_word(name, "type") {
            Test::Type(ClientType::from_name(value)?)
        } else if is_word(name, "addr") {
            Test::Address(value)
        } else if is_word(name, "laddr") {
            Test::LocalAddress(value)
        } else if is_word(name, "ip") {
            Test::Ip(value)
        } else if is_word(name, "user") {
            let user = state.access.users.find(value);
            let missing = || refusal(format!("ERR No such user '{}'", lossy_text(value)));
            Test::User(user.ok_or_else(missing)?)
        } else if is_word(name, "name") {
            Test::Name(value)
        } else if is_word(name, "lib-name") {
            Test::LibraryName(value)
        } else if is_word(name, "lib-ver") {
            Test::LibraryVersion(value)
        } else if is_word(name, "db") {
            Test::Database(database(value, is_negated, state)?)
        } else if is_word(name, "flags") {
            if !value.iter().all(|flag| FLAGS.contains(flag)) {
                let place = if is_negated { "NOT-FLAGS" } else { "provided" };
                let flags = lossy_text(value);
                return Err(refusal(format!(
                    "ERR Unknown flags found in the {place} filter: {flags}"
                )));
            }
            Test::Flags(value)
        } else if is_word(name, "capa") {
            if !value.iter().all(|capability| *capability == REDIRECT) {
                let place = if is_negated { "NOT-CAPA" } else { "provided" };
                let capabilities = lossy_text(value);
                return Err(refusal(format!(
                    "ERR Unknown capa found in the {place} filter: {capabilities}"
                )));
            }
            Test::Capabilities(value)
        } else if !is_negated && is_word(name, "maxage") {
            Test::ConnectedBy(before_s("maxage")?)
        } else if !is_negated && is_word(name, "idle") {
            Test::SilentBy(before_s("idle")?)
        } else {
            return Err(CommandError::Syntax);
        })
    }

    fn applies(&self, client: &ClientRecord) -> bool {
        let is_at = |wanted: &[u8], address: &Endpoint| wanted == address.to_string().as_bytes();
        match self {
            Test::Ids(wanted) => wanted.contains(&client.id),
            Test::Type(wanted) => *wanted == ClientType::of(client),
            Test::Address(wanted) => is_at(wanted, &client.address),
            Test::LocalAddress(wanted) => is_at(wanted, &client.local_address),
            Test::Ip(wanted) => *wanted == ip_of(&client.address).as_bytes(),
            Test::User(wanted) => Arc::ptr_eq(wanted, &client.user()),
            Test::Name(wanted) => *wanted == client.details().name.as_bytes(),
            Test::LibraryName(wanted) => *wanted == client.details().library_name.as_bytes(),
            Test::LibraryVersion(wanted) => *wanted == client.details().library_version.as_bytes(),
            Test::Database(wanted) => *wanted == client.details().database,
            Test::Flags(wanted) => {
                let flags = flags_of(client);
                wanted.iter().all(|flag| flags.as_bytes().contains(flag))
            }
            Test::Capabilities(wanted) => wanted.is_empty() || client.details().follows_redirect,
            Test::ConnectedBy(latest_s) => client.connected_ms / 1000 <= *latest_s,
            Test::SilentBy(latest_s) => {
                client.last_interaction_ms.load(Ordering::Relaxed) / 1000 <= *latest_s
            }
        }
    }
}

/// The part of a client's address before the port.
fn ip_of(address: &Endpoint) -> String {
    let address = address.to_string();
    match address.rsplit_once(':') {
        Some((ip, _)) => ip.trim_start_matches('[').trim_end_matches(']').to_owned(),
        None => address,
    }
}

/// A number of seconds.
fn positive(value: &[u8], what: &str) -> Result<i64, CommandError> {
    let number = parse_i64(value)
        .ok_or_else(|| refusal(format!("ERR {what} is not an integer or out of range")))?;
    match number {
        1.. => Ok(number),
        _ => Err(refusal(format!("ERR {what} should be greater than 0"))),
    }
}

fn database(value: &[u8], is_negated: bool, state: &ServerState) -> Result<u32, CommandError> {
    let name = if is_negated { "NOT-DB" } else { "DB" };
    let number = parse_i64(value)
        .ok_or_else(|| refusal(format!("ERR {name} is not an integer or out of range")))?;
    state.executor.environment().database(number).map_err(|_| {
        let last = state.executor.environment().databases.saturating_sub(1);
        refusal(format!("ERR {name} number should be between 0 and {last}"))
    })
}

/// Types of clients. Quoin has normal clients and subscribers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientType {
    /// A client without subscriptions.
    Normal,
    /// A client with subscriptions.
    Pubsub,
    /// A type that only Redis has.
    Other,
}

impl ClientType {
    fn from_name(name: &[u8]) -> Result<Self, CommandError> {
        let is_other = ["slave", "replica", "master"]
            .iter()
            .any(|other| is_word(name, other));
        if is_word(name, "normal") {
            Ok(ClientType::Normal)
        } else if is_word(name, "pubsub") {
            Ok(ClientType::Pubsub)
        } else if is_other {
            Ok(ClientType::Other)
        } else {
            Err(refusal(format!(
                "ERR Unknown client type '{}'",
                lossy_text(name)
            )))
        }
    }

    fn of(client: &ClientRecord) -> Self {
        if client.is_subscriber() {
            ClientType::Pubsub
        } else {
            ClientType::Normal
        }
    }
}
