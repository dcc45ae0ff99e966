//! The commands that concern the server, a connection or other clients rather than data.
//!
//! Each command has a file, which imports at most `errors`, `help` and other commands' helpers.

use std::sync::Arc;

use bytes::Bytes;

use super::clients::Scope;
use super::session::Session;
use super::state::ServerState;
use quoin_acl::User;
use quoin_data::command::row::{ConnectionCommand, Row};
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

mod acl;
mod auth;
mod backup;
mod basics;
mod client;
mod config;
mod debug;
mod errors;
mod functions;
mod info;
mod keyspace_count;
mod latency;
mod memory;
mod migrate;
mod monitor;
mod pubsub;
mod shutdown;
mod slowlog;
mod wait;

/// Executes a command for a client. `row` is the row of the subcommand, if there is one.
///
/// # Errors
/// Redis's errors.
pub(super) async fn execute(
    command: ConnectionCommand,
    row: &'static Row,
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    match command {
        ConnectionCommand::Acl => acl::execute(row.own_name(), arguments, session, state).await,
        ConnectionCommand::Auth => auth::auth(arguments, session, state).await,
        ConnectionCommand::Bgrewriteaof => backup::bgrewriteaof(session, state),
        ConnectionCommand::Bgsave => backup::bgsave(arguments, session, state),
        ConnectionCommand::Client => {
            client::execute(row.own_name(), arguments, session, state).await
        }
        ConnectionCommand::Config => {
            config::execute(row.own_name(), arguments, session, state).await
        }
        ConnectionCommand::Debug => debug::execute(arguments, state).await,
        ConnectionCommand::FunctionStats => functions::stats(state).await,
        ConnectionCommand::Hello => auth::hello(arguments, session, state).await,
        ConnectionCommand::Info => info::info(arguments, state).await,
        ConnectionCommand::Lastsave => Ok(backup::lastsave(state)),
        ConnectionCommand::Latency => latency::execute(row.own_name(), arguments, state),
        ConnectionCommand::Lolwut => Ok(basics::lolwut()),
        ConnectionCommand::MemoryStats => Ok(memory::stats(state).await),
        ConnectionCommand::Migrate => migrate::migrate(arguments, session, state).await,
        ConnectionCommand::Monitor => monitor::monitor(session, state),
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
        ConnectionCommand::Select => basics::select(arguments, session, state),
        ConnectionCommand::Shutdown => shutdown::shutdown(arguments, session, state),
        ConnectionCommand::Slowlog => slowlog::execute(row.own_name(), arguments, state),
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
        // See `connection/transaction.rs`.
        ConnectionCommand::Discard
        | ConnectionCommand::Exec
        | ConnectionCommand::Multi
        | ConnectionCommand::Unwatch
        | ConnectionCommand::Watch => Err(errors::not_implemented()),
    }
}

pub(super) use basics::selected_database;

/// The user that a client is after a command, if it is one that makes the client another user.
pub(super) fn next_user(
    command: ConnectionCommand,
    arguments: &[Bytes],
    state: &ServerState,
) -> Option<Arc<User>> {
    let is_hello = command == ConnectionCommand::Hello;
    let may_change = is_hello || command == ConnectionCommand::Auth;
    may_change
        .then(|| auth::next_user(is_hello, arguments, state))
        .flatten()
}

/// Whether a command may wait for long. Meanwhile the connection checks whether the client is still
/// there.
pub(super) fn may_wait(command: ConnectionCommand) -> bool {
    matches!(
        command,
        ConnectionCommand::Wait
            | ConnectionCommand::Waitaof
            | ConnectionCommand::Debug
            | ConnectionCommand::Save
    )
}

/// Whether a command ends subscriptions. Messages that wait are then written before its reply, so
/// that none follows it.
pub(super) fn ends_subscriptions(command: ConnectionCommand) -> bool {
    matches!(
        command,
        ConnectionCommand::Unsubscribe
            | ConnectionCommand::Punsubscribe
            | ConnectionCommand::Sunsubscribe
            | ConnectionCommand::Reset
    )
}
