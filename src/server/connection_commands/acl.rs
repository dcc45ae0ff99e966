//! ACL with one user: `default`, which may do everything.

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::errors::{lossy_text, not_implemented, refusal, unknown_or_wrong_number};
use crate::commands::arguments::argument;
use crate::commands::categories::{self, CATEGORIES};
use crate::commands::help::help;
use crate::commands::table;
use crate::error::CommandError;
use crate::reply::Reply;
use crate::server::state::ServerState;

/// `ACL <subcommand> …`.
pub(super) fn execute(
    subcommand: &str,
    arguments: &[Bytes],
    state: &ServerState,
) -> Result<Reply, CommandError> {
    match subcommand {
        "cat" => categories(arguments),
        "getuser" => Ok(user(argument(arguments, 2)?, state)),
        "help" => Ok(help(HELP_TITLE, HELP)),
        "list" => Ok(Reply::Array(vec![Reply::bulk(rule(state))])),
        "users" => Ok(Reply::Array(vec![Reply::bulk("default")])),
        "whoami" => Ok(Reply::bulk("default")),
        _ => Err(not_implemented()),
    }
}

fn password_digest(state: &ServerState) -> Option<String> {
    let password = state.config.requirepass()?;
    let digest = Sha256::digest(password.as_bytes());
    Some(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn rule(state: &ServerState) -> String {
    let password = match password_digest(state) {
        Some(digest) => format!("#{digest}"),
        None => "nopass".to_owned(),
    };
    format!("user default on {password} sanitize-payload ~* &* +@all")
}

/// `ACL GETUSER username`.
fn user(name: &[u8], state: &ServerState) -> Reply {
    if name != b"default" {
        return Reply::Null;
    }
    let text = |text: &'static str| Reply::bulk(text);
    let digest = password_digest(state);
    let mut flags = vec![text("on")];
    if digest.is_none() {
        flags.push(text("nopass"));
    }
    flags.push(text("sanitize-payload"));
    Reply::Map(vec![
        (text("flags"), Reply::Set(flags)),
        (
            text("passwords"),
            Reply::Array(digest.into_iter().map(Reply::bulk).collect()),
        ),
        (text("commands"), text("+@all")),
        (text("keys"), text("~*")),
        (text("channels"), text("&*")),
        (text("selectors"), Reply::Array(Vec::new())),
    ])
}

/// `ACL CAT [category]`.
fn categories(arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let name = |category: &&'static str| category.strip_prefix('@').unwrap_or_default();
    match arguments {
        [_, _] => Ok(Reply::Array(
            CATEGORIES
                .iter()
                .map(|category| Reply::bulk(name(category)))
                .collect(),
        )),
        [_, _, category] => {
            let wanted = CATEGORIES
                .iter()
                .find(|known| name(known).as_bytes().eq_ignore_ascii_case(category));
            let Some(wanted) = wanted else {
                return Err(refusal(format!(
                    "ERR Unknown category '{}'",
                    lossy_text(category)
                )));
            };
            let members = table::all()
                .iter()
                .filter(|row| row.subcommands.is_empty())
                .filter(|row| categories::categories(row).any(|category| category == *wanted));
            Ok(Reply::Array(
                members.map(|row| Reply::bulk(row.name)).collect(),
            ))
        }
        _ => Err(unknown_or_wrong_number(arguments)),
    }
}

const HELP_TITLE: &str = "ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";

#[rustfmt::skip]
const HELP: &[&str] = &[
    "CAT [<category>]",
    "    List all commands that belong to <category>, or all command categories",
    "    when no category is specified.",
    "GETUSER <username>",
    "    Get the user's details.",
    "LIST",
    "    Show users details in config file format.",
    "USERS",
    "    List all the registered usernames.",
    "WHOAMI",
    "    Return the current connection username.",
];
