//! The commands that concern the server, a connection or other clients rather than data. `shared` has what
//! several of them need.

mod acl;
mod backup;
mod client;
mod client_filter;
mod cluster;
mod config;
mod info;
mod latency;
mod memory;
mod migrate;
mod pubsub;
mod queues;
mod sentinel;
mod server;
mod session;
mod shared;
mod tracking;

use std::sync::Arc;

use bytes::Bytes;

use crate::clients::Scope;
use crate::session::Session;
use crate::state::ServerState;
use quoin_acl::User;
use quoin_data::command::row::{ConnectionCommand, Row};
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

pub(super) use cluster::moved;
pub(super) use session::selected_database;

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
        ConnectionCommand::Auth => session::auth(arguments, session, state).await,
        ConnectionCommand::Bgrewriteaof => backup::bgrewriteaof(session, state),
        ConnectionCommand::Bgsave => backup::bgsave(arguments, session, state),
        ConnectionCommand::Client => {
            client::execute(row.own_name(), arguments, session, state).await
        }
        ConnectionCommand::Cluster => cluster::execute(row, arguments, session, state).await,
        ConnectionCommand::Config => {
            config::execute(row.own_name(), arguments, session, state).await
        }
        ConnectionCommand::Debug => server::debug(arguments, state).await,
        ConnectionCommand::FunctionStats => server::function_stats(state).await,
        ConnectionCommand::Hello => session::hello(arguments, session, state).await,
        ConnectionCommand::Info => info::info(arguments, session, state).await,
        ConnectionCommand::Lastsave => Ok(backup::lastsave(state)),
        ConnectionCommand::Latency => latency::execute(row.own_name(), arguments, state),
        ConnectionCommand::Lolwut => Ok(server::lolwut(state)),
        ConnectionCommand::MemoryStats => Ok(memory::stats(state).await),
        ConnectionCommand::Migrate => migrate::migrate(arguments, session, state).await,
        ConnectionCommand::Monitor => server::monitor(session, state),
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
        ConnectionCommand::QueueTop => queues::top(row, arguments, session, state),
        ConnectionCommand::Quit => session::quit(session),
        ConnectionCommand::Reset => Ok(session::reset(session, state)),
        ConnectionCommand::Role => Ok(sentinel::role(session, state)),
        ConnectionCommand::Sentinel => {
            sentinel::execute(row.own_name(), arguments, session, state).await
        }
        ConnectionCommand::Save => backup::save(state).await,
        ConnectionCommand::Select => session::select(arguments, session, state),
        ConnectionCommand::Shutdown => server::shutdown(arguments, session, state),
        ConnectionCommand::Slowlog => latency::slowlog(row.own_name(), arguments, state),
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
        ConnectionCommand::Wait => server::wait(arguments, session, state).await,
        ConnectionCommand::Waitaof => server::wait_aof(arguments, session, state).await,
        // See `connection/transaction.rs`.
        ConnectionCommand::Discard
        | ConnectionCommand::Exec
        | ConnectionCommand::Multi
        | ConnectionCommand::Unwatch
        | ConnectionCommand::Watch => Err(shared::not_implemented()),
    }
}

/// The user that a client becomes by a command, if the command changes the user.
pub(super) fn next_user(
    command: ConnectionCommand,
    arguments: &[Bytes],
    state: &ServerState,
) -> Option<Arc<User>> {
    let is_hello = command == ConnectionCommand::Hello;
    let may_change = is_hello || command == ConnectionCommand::Auth;
    may_change
        .then(|| session::next_user(is_hello, arguments, state))
        .flatten()
}

/// Whether a command may wait for long. While it waits, the connection checks whether the client is still
/// connected.
pub(super) fn may_wait(command: ConnectionCommand) -> bool {
    matches!(
        command,
        ConnectionCommand::Wait
            | ConnectionCommand::Waitaof
            | ConnectionCommand::Debug
            | ConnectionCommand::Save
    )
}

/// Whether a command ends subscriptions. Waiting messages are then written before its reply, so
/// that none comes after it.
pub(super) fn ends_subscriptions(command: ConnectionCommand) -> bool {
    matches!(
        command,
        ConnectionCommand::Unsubscribe
            | ConnectionCommand::Punsubscribe
            | ConnectionCommand::Sunsubscribe
            | ConnectionCommand::Reset
    )
}
