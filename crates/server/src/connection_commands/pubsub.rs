//! SUBSCRIBE and related commands, and PUBSUB. As in Redis, each name that a client subscribes to
//! or unsubscribes from has its own reply.

use bytes::Bytes;

use crate::clients::Scope;
use crate::connection_commands::shared::{not_implemented, unknown_or_wrong_number};
use crate::session::Session;
use crate::state::ServerState;
use quoin_base::limits::{SENTINEL_SUBSCRIPTIONS_MAX, SUBSCRIPTIONS_PER_CLIENT_MAX};
use quoin_data::command::arguments::rest;
use quoin_data::command::help::help;
use quoin_data::error::CommandError;
use quoin_data::unit::signals::ChannelKind;
use quoin_resp::reply::Reply;

/// `SUBSCRIBE`, `PSUBSCRIBE` or `SSUBSCRIBE name [name …]`.
pub(super) async fn subscribe(
    scope: Scope,
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let all = session.subscriptions.len();
    let max = match session.is_on_sentinel() {
        true => SENTINEL_SUBSCRIPTIONS_MAX,
        false => SUBSCRIPTIONS_PER_CLIENT_MAX,
    };
    if all.saturating_add(arguments.len()) > max {
        return Err(CommandError::text("ERR too many subscriptions"));
    }
    let word = match scope {
        Scope::Channel => "subscribe",
        Scope::Pattern => "psubscribe",
        Scope::Shard => "ssubscribe",
    };
    let names = rest(arguments, 1).iter();
    let replies = names.map(|name| {
        let subscriptions = &mut session.subscriptions;
        let count =
            state
                .pubsub_of(session.face)
                .subscribe(&session.client, subscriptions, scope, name);
        confirmation(word, Reply::Bulk(name.clone()), count)
    });
    let replies = replies.collect();
    if session.is_on_sentinel() {
        // These messages come from this server, and no user's channels are involved.
        return Ok(Reply::Several(replies));
    }
    let user = &session.user;
    if !user.is_open() {
        // The user may have lost a channel since it was checked, when this subscription was not
        // visible yet.
        let definition = user.definition();
        let may_subscribe = |name: &Bytes| definition.may_subscribe(name, scope == Scope::Pattern);
        if !rest(arguments, 1).iter().all(may_subscribe) {
            session.client.kill();
        }
    }
    // After the confirmation the client gets everything that any server publishes.
    state.executor.begin_subscribing().await;
    Ok(Reply::Several(replies))
}

/// `UNSUBSCRIBE`, `PUNSUBSCRIBE` or `SUNSUBSCRIBE [name …]`; without names, from all.
pub(super) fn unsubscribe(
    scope: Scope,
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Reply {
    let word = match scope {
        Scope::Channel => "unsubscribe",
        Scope::Pattern => "punsubscribe",
        Scope::Shard => "sunsubscribe",
    };
    let all: Vec<Bytes>;
    let names = match rest(arguments, 1) {
        [] => {
            all = session.subscriptions.names(scope).iter().cloned().collect();
            all.as_slice()
        }
        names => names,
    };
    if names.is_empty() {
        let count = session.subscriptions.count(scope);
        return confirmation(word, Reply::Null, count);
    }
    let replies = names.iter().map(|name| {
        let subscriptions = &mut session.subscriptions;
        let count =
            state
                .pubsub_of(session.face)
                .unsubscribe(&session.client, subscriptions, scope, name);
        confirmation(word, Reply::Bulk(name.clone()), count)
    });
    Reply::Several(replies.collect())
}

fn confirmation(word: &'static str, name: Reply, count: usize) -> Reply {
    Reply::Push(vec![Reply::bulk(word), name, Reply::count(count)])
}

/// `PUBSUB <subcommand> …`.
pub(super) fn pubsub(
    subcommand: &str,
    arguments: &[Bytes],
    state: &ServerState,
) -> Result<Reply, CommandError> {
    match subcommand {
        "channels" => channels(ChannelKind::Global, arguments, state),
        "help" => Ok(help(HELP_TITLE, HELP)),
        "numpat" => Ok(Reply::count(state.pubsub.pattern_count())),
        "numsub" => Ok(subscribers(ChannelKind::Global, arguments, state)),
        "shardchannels" => channels(ChannelKind::Shard, arguments, state),
        "shardnumsub" => Ok(subscribers(ChannelKind::Shard, arguments, state)),
        _ => Err(not_implemented()),
    }
}

fn channels(
    kind: ChannelKind,
    arguments: &[Bytes],
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let pattern = match rest(arguments, 2) {
        [] => None,
        [pattern] => Some(pattern.as_ref()),
        _ => return Err(unknown_or_wrong_number(arguments)),
    };
    let channels = state.pubsub.channels(kind, pattern);
    Ok(Reply::Array(
        channels.into_iter().map(Reply::Bulk).collect(),
    ))
}

fn subscribers(kind: ChannelKind, arguments: &[Bytes], state: &ServerState) -> Reply {
    let counts = rest(arguments, 2).iter().flat_map(|channel| {
        let count = state.pubsub.channel_subscribers(kind, channel);
        [Reply::Bulk(channel.clone()), Reply::count(count)]
    });
    Reply::Array(counts.collect())
}

const HELP_TITLE: &str = "PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";

#[rustfmt::skip]
const HELP: &[&str] = &[
    "CHANNELS [<pattern>]",
    "    Return the currently active channels matching a <pattern> (default: '*').",
    "NUMPAT",
    "    Return number of subscriptions to patterns.",
    "NUMSUB [<channel> ...]",
    "    Return the number of subscribers for the specified channels, excluding",
    "    pattern subscriptions(default: no channels).",
    "SHARDCHANNELS [<pattern>]",
    "    Return the currently active shard level channels matching a <pattern> (default: '*').",
    "SHARDNUMSUB [<shardchannel> ...]",
    "    Return the number of subscribers for the specified shard level channel(s)",
];
