//! The commands that the server carries out itself.

use bytes::Bytes;

use super::ServerState;
use super::pubsub::Scope;
use super::session::Session;
use crate::commands::row::{ConnectionCommand, Row};
use crate::error::CommandError;
use crate::reply::Reply;

mod acl;
mod auth;
mod backup;
mod basics;
mod client;
mod config;
mod debug;
mod info;
mod latency;
mod pubsub;
mod shutdown;
mod slowlog;
mod wait;

/// Carries out a command for a client. `row` is that of the subcommand, where there is one.
///
/// # Errors
/// What Redis refuses, in its words.
pub async fn carry_out(
    command: ConnectionCommand,
    row: &'static Row,
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    match command {
        ConnectionCommand::Acl => acl::carry_out(row.own_name(), arguments, state),
        ConnectionCommand::Auth => auth::auth(arguments, session, state),
        ConnectionCommand::Bgsave => backup::bgsave(arguments, session, state),
        ConnectionCommand::Client => client::carry_out(row.own_name(), arguments, session, state),
        ConnectionCommand::Config => config::carry_out(row.own_name(), arguments, state).await,
        ConnectionCommand::Debug => debug::carry_out(arguments, state).await,
        ConnectionCommand::Function => basics::function_flush(arguments),
        ConnectionCommand::Hello => auth::hello(arguments, session, state),
        ConnectionCommand::Info => info::info(arguments, state).await,
        ConnectionCommand::Lastsave => backup::lastsave(state),
        ConnectionCommand::Latency => latency::carry_out(row.own_name(), arguments, state),
        ConnectionCommand::Lolwut => Ok(basics::lolwut()),
        ConnectionCommand::Psubscribe => {
            pubsub::subscribe(Scope::Pattern, arguments, session, state).await
        }
        ConnectionCommand::Pubsub => pubsub::pubsub(row.own_name(), arguments, state),
        ConnectionCommand::Punsubscribe => Ok(pubsub::unsubscribe(
            Scope::Pattern,
            arguments,
            session,
            state,
        )),
        ConnectionCommand::Quit => basics::quit(session),
        ConnectionCommand::Reset => Ok(auth::reset(session, state)),
        ConnectionCommand::Save => backup::save(state).await,
        ConnectionCommand::Select => basics::select(arguments, session),
        ConnectionCommand::Shutdown => shutdown::shutdown(arguments, session, state),
        ConnectionCommand::Slowlog => slowlog::carry_out(row.own_name(), arguments, state),
        ConnectionCommand::Ssubscribe => {
            pubsub::subscribe(Scope::Shard, arguments, session, state).await
        }
        ConnectionCommand::Subscribe => {
            pubsub::subscribe(Scope::Channel, arguments, session, state).await
        }
        ConnectionCommand::Sunsubscribe => {
            Ok(pubsub::unsubscribe(Scope::Shard, arguments, session, state))
        }
        ConnectionCommand::Unsubscribe => Ok(pubsub::unsubscribe(
            Scope::Channel,
            arguments,
            session,
            state,
        )),
        ConnectionCommand::Wait => wait::wait(arguments, session, state).await,
        ConnectionCommand::Waitaof => wait::wait_aof(arguments, session, state).await,
        // The connection's own, see `connection/transaction.rs`.
        ConnectionCommand::Discard
        | ConnectionCommand::Exec
        | ConnectionCommand::Multi
        | ConnectionCommand::Unwatch
        | ConnectionCommand::Watch => Err(not_carried_out()),
    }
}

pub(super) use basics::selected_database;
pub(super) use client::describe_client;

/// Whether a command may take long without doing anything, so that the connection should look
/// meanwhile whether the client is still there.
pub(super) fn may_wait(command: ConnectionCommand) -> bool {
    matches!(
        command,
        ConnectionCommand::Wait
            | ConnectionCommand::Waitaof
            | ConnectionCommand::Debug
            | ConnectionCommand::Save
    )
}

/// Whether a command ends subscriptions: messages that wait are written before its reply, so that
/// none follows it.
pub(super) fn ends_subscriptions(command: ConnectionCommand) -> bool {
    matches!(
        command,
        ConnectionCommand::Unsubscribe
            | ConnectionCommand::Punsubscribe
            | ConnectionCommand::Sunsubscribe
            | ConnectionCommand::Reset
    )
}

/// An argument as text, for an error that repeats it.
fn shown(argument: &[u8]) -> String {
    String::from_utf8_lossy(argument).into_owned()
}

/// An error whose text repeats something.
fn refusal(line: String) -> CommandError {
    CommandError::Text(line.into())
}

/// Redis's answer where a subcommand's arguments are not among the forms that it has.
fn unknown_or_wrong_number(arguments: &[Bytes]) -> CommandError {
    let word = |at: usize| arguments.get(at).map_or(&b""[..], Bytes::as_ref);
    let subcommand = word(1);
    refusal(format!(
        "ERR unknown subcommand or wrong number of arguments for '{}'. Try {} HELP.",
        shown(subcommand.get(..128).unwrap_or(subcommand)),
        shown(word(0)).to_uppercase()
    ))
}

/// A subcommand that the table has and the code has not: a mistake of ours.
fn not_carried_out() -> CommandError {
    CommandError::text("ERR command is not carried out by this server")
}
