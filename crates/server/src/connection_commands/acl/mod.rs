//! ACL.

use bytes::Bytes;

use super::errors::{not_implemented, refusal, unknown_or_wrong_number};
use crate::audit::log_change;
use crate::session::Session;
use crate::state::ServerState;
use quoin_data::command::arguments::argument;
use quoin_data::command::help::help;
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

mod categories;
mod change;
mod files;
mod generate;
mod log;
mod show;
mod trial;

/// `ACL <subcommand> …`.
pub(super) async fn execute(
    subcommand: &str,
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let reply = match subcommand {
        "cat" => categories::categories(arguments),
        "deluser" => change::delete_users(arguments, session, state).await,
        "dryrun" => trial::dry_run(arguments, state).await,
        "genpass" => generate::password(arguments),
        "getuser" => show::user(argument(arguments, 2)?, state).await,
        "help" => Ok(help(HELP_TITLE, HELP)),
        "list" => show::list(state).await,
        "load" => files::load(session, state).await,
        "log" => log::log(arguments, state),
        "save" => files::save(state).await,
        "setuser" => change::set_user(arguments, state).await,
        "users" => show::names(state).await,
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
