//! ACL.

use std::path::Path;

use bytes::Bytes;
use rand::TryRng;
use rand::rngs::SysRng;

use crate::audit::log_change;
use crate::connection_commands::shared::{
    lossy_text, not_implemented, refusal, unknown_or_wrong_number,
};
use crate::session::Session;
use crate::state::ServerState;
use crate::users;
use quoin_acl::log::Entry;
use quoin_acl::{DEFAULT_USER, Definition, Flag, Selector, file, has_spaces};
use quoin_base::limits::GENERATED_PASSWORD_BITS_MAX;
use quoin_base::secret::hex;
use quoin_base::threads;
use quoin_data::command::arguments::{argument, integer, is_word, rest, to_usize};
use quoin_data::command::help::help;
use quoin_data::command::row::CATEGORIES;
use quoin_data::command::{resolve, row};
use quoin_data::error::CommandError;
use quoin_data::table;
use quoin_resp::reply::Reply;

/// `ACL <subcommand> …`.
pub(super) async fn execute(
    subcommand: &str,
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let reply = match subcommand {
        "cat" => cat(arguments),
        "deluser" => delete_users(arguments, session, state).await,
        "dryrun" => dry_run(arguments, state).await,
        "genpass" => generate_password(arguments),
        "getuser" => get_user(argument(arguments, 2)?, state).await,
        "help" => Ok(help(HELP_TITLE, HELP)),
        "list" => list(state).await,
        "load" => load(session, state).await,
        "log" => log(arguments, state),
        "save" => save(state).await,
        "setuser" => set_user(arguments, state).await,
        "users" => names(state).await,
        "whoami" => Ok(Reply::Bulk(session.user.name().clone())),
        _ => Err(not_implemented()),
    }?;
    if ["deluser", "load", "save", "setuser"].contains(&subcommand) {
        log_change(arguments, session);
    }
    Ok(reply)
}

const HELP_TITLE: &str = "ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";

#[rustfmt::skip]
const HELP: &[&str] = &[
    "CAT [<category>]",
    "    List all commands that belong to <category>, or all command categories",
    "    when no category is specified.",
    "DELUSER <username> [<username> ...]",
    "    Delete a list of users.",
    "DRYRUN <username> <command> [<arg> ...]",
    "    Returns whether the user can execute the given command without executing the command.",
    "GETUSER <username>",
    "    Get the user's details.",
    "GENPASS [<bits>]",
    "    Generate a secure 256-bit user password. The optional `bits` argument can",
    "    be used to specify a different size.",
    "LIST",
    "    Show users details in config file format.",
    "LOAD",
    "    Reload users from the ACL file.",
    "LOG [<count> | RESET]",
    "    Show the ACL log entries.",
    "SAVE",
    "    Save the current config to the ACL file.",
    "SETUSER <username> <attribute> [<attribute> ...]",
    "    Create or modify a user with the specified attributes.",
    "USERS",
    "    List all the registered usernames.",
    "WHOAMI",
    "    Return the current connection username.",
];

/// Bytes of an unknown category that its error repeats.
const SHOWN_BYTES_MAX: usize = 128;

/// `ACL CAT [category]`.
fn cat(arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let name = |category: &'static str| category.strip_prefix('@').unwrap_or_default();
    let names = |all: &mut dyn Iterator<Item = &'static str>| {
        Ok(Reply::Array(all.map(Reply::bulk).collect()))
    };
    match arguments {
        [_, _] => names(&mut CATEGORIES.iter().copied().map(name)),
        [_, _, given] => {
            let mut known = CATEGORIES.iter().copied();
            let wanted = known.find(|known| name(known).as_bytes().eq_ignore_ascii_case(given));
            let Some(wanted) = wanted else {
                let shown = given.get(..SHOWN_BYTES_MAX).unwrap_or(given);
                let shown = lossy_text(shown);
                return Err(refusal(format!("ERR Unknown category '{shown}'")));
            };
            let rows = table::all().iter();
            let mut members = rows.filter(|row| row::categories(row).any(|one| one == wanted));
            names(&mut members.by_ref().map(|row| row.name))
        }
        _ => Err(unknown_or_wrong_number(arguments)),
    }
}

/// `ACL SETUSER username [rule …]`.
async fn set_user(arguments: &[Bytes], state: &ServerState) -> Result<Reply, CommandError> {
    let name = argument(arguments, 2)?;
    if has_spaces(name) {
        return Err(CommandError::text(
            "ERR Usernames can't contain spaces or null characters",
        ));
    }
    let rules = rest(arguments, 3);
    if users::are_in_store(state) {
        users::set_user(state, name, rules).await?;
        return Ok(Reply::OK);
    }
    let set = state.access.set_user(name, rules);
    set.map_err(|text| refusal(format!("ERR {text}")))?;
    Ok(Reply::OK)
}

/// `ACL DELUSER username [username …]`.
async fn delete_users(
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let names = rest(arguments, 2);
    if names.iter().any(|name| name == DEFAULT_USER.as_bytes()) {
        return Err(CommandError::text(
            "ERR The 'default' user cannot be removed",
        ));
    }
    let deleted = match users::are_in_store(state) {
        true => users::delete_users(state, names).await?,
        false => {
            let deleted = names.iter().filter(|name| state.access.delete_user(name));
            deleted.count()
        }
    };
    // After the reply.
    session.is_closing |= session.user.is_deleted();
    Ok(Reply::count(deleted))
}

/// `ACL LIST`.
async fn list(state: &ServerState) -> Result<Reply, CommandError> {
    users::refresh(state).await?;
    let users = state.access.users.all();
    let lines = users.iter().map(|user| Reply::bulk(file::line(user)));
    Ok(Reply::Array(lines.collect()))
}

/// `ACL USERS`.
async fn names(state: &ServerState) -> Result<Reply, CommandError> {
    users::refresh(state).await?;
    let users = state.access.users.all();
    let names = users.iter().map(|user| Reply::Bulk(user.name().clone()));
    Ok(Reply::Array(names.collect()))
}

/// `ACL GETUSER username`.
async fn get_user(name: &[u8], state: &ServerState) -> Result<Reply, CommandError> {
    users::refresh(state).await?;
    let user = state.access.users.find(name);
    Ok(user.map_or(Reply::Null, |user| describe_user(&user.definition())))
}

fn describe_user(user: &Definition) -> Reply {
    let flags = user.flags().map(Flag::name).map(Reply::bulk);
    let passwords = user.passwords().map(|hash| Reply::bulk(hash.to_owned()));
    let others = user.others().iter();
    let others = others.map(|selector| Reply::Map(selector_fields(selector)));
    let mut fields = vec![
        (Reply::bulk("flags"), Reply::Set(flags.collect())),
        (Reply::bulk("passwords"), Reply::Array(passwords.collect())),
    ];
    fields.extend(selector_fields(user.root()));
    fields.push((Reply::bulk("selectors"), Reply::Array(others.collect())));
    Reply::Map(fields)
}

fn selector_fields(selector: &Selector) -> Vec<(Reply, Reply)> {
    vec![
        (
            Reply::bulk("commands"),
            Reply::bulk(selector.command_rules()),
        ),
        (Reply::bulk("keys"), Reply::bulk(selector.keys())),
        (Reply::bulk("channels"), Reply::bulk(selector.channels())),
    ]
}

/// `ACL DRYRUN username command [arg …]`: whether the user may run the command.
async fn dry_run(arguments: &[Bytes], state: &ServerState) -> Result<Reply, CommandError> {
    users::refresh(state).await?;
    let name = argument(arguments, 2)?;
    let Some(user) = state.access.users.find(name) else {
        let name = lossy_text(name);
        return Err(refusal(format!("ERR User '{name}' not found")));
    };
    let command = rest(arguments, 3);
    let row = resolve(command).map_err(|refused| match refused.row {
        Some(_) => refusal(refused.line),
        None => {
            let name = command.first().map_or(&b""[..], Bytes::as_ref);
            refusal(format!("ERR Command '{}' not found", lossy_text(name)))
        }
    })?;
    Ok(match user.definition().check(row, command) {
        Ok(()) => Reply::OK,
        Err(denial) => Reply::bulk(denial.detail(name, row, command)),
    })
}

const DEFAULT_BITS: i64 = 256;
/// Bits of a hexadecimal digit.
const DIGIT_BITS: i64 = 4;

/// `ACL GENPASS [bits]` → hexadecimal digits, from the operating system's source for secrets.
fn generate_password(arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let bits = match arguments {
        [_, _] => DEFAULT_BITS,
        [_, _, bits] => integer(bits)?,
        _ => return Err(unknown_or_wrong_number(arguments)),
    };
    if !(1..=GENERATED_PASSWORD_BITS_MAX).contains(&bits) {
        return Err(refusal(format!(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a positive \
             number up to {GENERATED_PASSWORD_BITS_MAX}"
        )));
    }
    let digits = usize::try_from((bits + DIGIT_BITS - 1) / DIGIT_BITS).unwrap_or_default();
    let mut secret = vec![0; digits.div_ceil(2)];
    SysRng
        .try_fill_bytes(&mut secret)
        .map_err(|error| refusal(format!("ERR cannot generate random numbers: {error}")))?;
    let mut text = hex(secret);
    text.truncate(digits);
    Ok(Reply::bulk(text))
}

/// Entries that are shown by default.
const DEFAULT_COUNT: i64 = 10;

/// `ACL LOG [count | RESET]`.
fn log(arguments: &[Bytes], state: &ServerState) -> Result<Reply, CommandError> {
    let count = match arguments {
        [_, _] => DEFAULT_COUNT,
        [_, _, word] if is_word(word, "reset") => {
            state.access.log.reset();
            return Ok(Reply::OK);
        }
        [_, _, count] => integer(count)?.max(0),
        _ => return Err(unknown_or_wrong_number(arguments)),
    };
    let now_ms = state.clock.now_ms();
    let entries = state.access.log.newest(to_usize(count)).into_iter();
    let replies = entries.map(|entry| describe_entry(entry, now_ms));
    Ok(Reply::Array(replies.collect()))
}

fn describe_entry(entry: Entry, now_ms: i64) -> Reply {
    let Entry {
        event,
        count,
        id,
        created_ms,
        updated_ms,
    } = entry;
    let age_s = (now_ms - updated_ms) as f64 / 1000.0;
    let fields = [
        ("count", Reply::Integer(count)),
        ("reason", Reply::bulk(event.reason.name())),
        ("context", Reply::bulk(event.context.name())),
        ("object", Reply::Bulk(event.object)),
        ("username", Reply::Bulk(event.username)),
        ("age-seconds", Reply::Double(age_s)),
        ("client-info", Reply::bulk(event.client)),
        ("entry-id", Reply::Integer(id)),
        ("timestamp-created", Reply::Integer(created_ms)),
        ("timestamp-last-updated", Reply::Integer(updated_ms)),
    ];
    let named = |(name, value)| (Reply::bulk(name), value);
    Reply::Map(fields.into_iter().map(named).collect())
}

const NO_FILE: CommandError = CommandError::text(
    "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via \
     the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration \
     file set) in order to store users in the Redis configuration.",
);
const NOT_SAVED: CommandError = CommandError::text(
    "ERR There was an error trying to save the ACLs. Please check the server logs for more information",
);

/// `ACL LOAD`.
async fn load(session: &mut Session, state: &ServerState) -> Result<Reply, CommandError> {
    let path = state.config.aclfile().ok_or(NO_FILE)?;
    let defaults = state.access.defaults();
    let read = on_thread(move || users::read_file(&path, defaults)).await?;
    let users = read.map_err(|errors| refusal(format!("ERR {errors}")))?;
    match users::are_in_store(state) {
        true => users::replace_users(state, users).await?,
        false => state.access.load_users(users),
    }
    // After the reply.
    session.is_closing |= session.user.is_deleted();
    Ok(Reply::OK)
}

/// `ACL SAVE`.
async fn save(state: &ServerState) -> Result<Reply, CommandError> {
    let path = state.config.aclfile().ok_or(NO_FILE)?;
    users::refresh(state).await?;
    let users = state.access.users.all();
    let text = file::format(users.iter().map(AsRef::as_ref));
    let written = on_thread(move || users::write_file(Path::new(&path), &text)).await?;
    written.map_err(|error| {
        tracing::warn!(%error, "cannot save the users");
        NOT_SAVED
    })?;
    Ok(Reply::OK)
}

/// Runs work that waits for the disk.
async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CommandError> {
    let done = threads::run("quoin-acl", work).await;
    done.map_err(|error| refusal(format!("ERR cannot use a thread for the file: {error}")))
}
