//! CONFIG.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use crate::audit::log_change;
use crate::connection_commands::shared::not_implemented;
use crate::session::Session;
use crate::state::ServerState;
use crate::users;
use quoin_acl::{DEFAULT_USER, User};
use quoin_base::threads;
use quoin_config::RuntimeConfig;
use quoin_data::command::arguments::{is_word, rest};
use quoin_data::command::help::help;
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

/// `CONFIG <subcommand> …`.
pub(super) async fn execute(
    subcommand: &str,
    arguments: &[Bytes],
    session: &Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let reply = match subcommand {
        "get" => return Ok(get(arguments, state)),
        "set" => set(arguments, state).await?,
        "resetstat" => {
            state.statistics.reset();
            state.disconnections.reset();
            state.executor.statistics().reset();
            state.executor.activity().reset(Instant::now());
            let lookups = &state.executor.environment().lookups;
            lookups.hits.reset();
            lookups.misses.reset();
            Reply::OK
        }
        "rewrite" => rewrite(state).await?,
        "help" => return Ok(help(HELP_TITLE, HELP)),
        _ => return Err(not_implemented()),
    };
    log_change(arguments, session);
    Ok(reply)
}

/// `CONFIG GET pattern [pattern …]`.
fn get(arguments: &[Bytes], state: &ServerState) -> Reply {
    let patterns: Vec<&[u8]> = rest(arguments, 2).iter().map(AsRef::as_ref).collect();
    let found = state.config.get(&patterns);
    Reply::Map(
        found
            .into_iter()
            .map(|(name, value)| (Reply::bulk(name), Reply::bulk(value)))
            .collect(),
    )
}

/// `CONFIG SET parameter value [parameter value …]`.
async fn set(arguments: &[Bytes], state: &ServerState) -> Result<Reply, CommandError> {
    let mut pairs: Vec<(Bytes, Bytes)> = Vec::new();
    for pair in rest(arguments, 2).chunks(2) {
        let [name, value] = pair else {
            return Err(CommandError::Syntax);
        };
        pairs.push((name.clone(), value.clone()));
    }
    let has_password = pairs.iter().any(|(name, _)| is_word(name, "requirepass"));
    let before = state.config.requirepass();
    set_all(pairs, &state.config).await?;
    if has_password {
        let given = state.config.requirepass();
        if let Err(error) = users::take_requirepass(state).await {
            state.config.undo_requirepass(given.as_deref(), before);
            return Err(error);
        }
    }
    Ok(Reply::OK)
}

/// Changes settings. Settings that read files are changed on a thread that may wait for the disk.
async fn set_all(
    pairs: Vec<(Bytes, Bytes)>,
    config: &Arc<RuntimeConfig>,
) -> Result<(), CommandError> {
    let waits = pairs
        .iter()
        .any(|(name, _)| RuntimeConfig::reads_files(name));
    let config = Arc::clone(config);
    let set = move || {
        let pairs: Vec<(&[u8], &[u8])> = pairs
            .iter()
            .map(|(name, value)| (name.as_ref(), value.as_ref()))
            .collect();
        config.set(&pairs)
    };
    let done = match waits {
        true => threads::run("quoin-config", set)
            .await
            .unwrap_or_else(|error| Err(format!("ERR CONFIG SET failed: {error}"))),
        false => set(),
    };
    done.map_err(|line| CommandError::Text(line.into()))
}

/// `CONFIG REWRITE`, on a thread that may wait for the disk.
async fn rewrite(state: &ServerState) -> Result<Reply, CommandError> {
    let config = Arc::clone(&state.config);
    let users = users_to_write(state)?;
    let written = threads::run("quoin-config", move || config.rewrite(users.as_deref())).await;
    match written {
        Ok(Ok(())) => Ok(Reply::OK),
        Ok(Err(line)) => Err(CommandError::Text(line.into())),
        Err(error) => Err(CommandError::Text(
            format!("ERR Rewriting config file: {error}").into(),
        )),
    }
}

/// The users as lines of the settings file. `None` if users are in `aclfile` or in the store of a
/// cluster, or if the only user is an unchanged `default`.
fn users_to_write(state: &ServerState) -> Result<Option<Vec<String>>, CommandError> {
    if users::are_in_store(state) || state.config.aclfile().is_some() {
        return Ok(None);
    }
    let users = state.access.users.all();
    let is_configured = |user: &Arc<User>| {
        user.name().as_ref() == DEFAULT_USER.as_bytes()
            && *user.definition() == state.access.configured_default()
    };
    if state.config.file_users().is_none() && users.iter().all(is_configured) {
        return Ok(None);
    }
    let line = |user: &Arc<User>| {
        let rules = user.definition().describe();
        String::from_utf8([user.name().as_ref(), b" ", &rules].concat())
    };
    let lines: Result<Vec<String>, _> = users.iter().map(line).collect();
    lines.map(Some).map_err(|_| {
        CommandError::text(
            "ERR Rewriting config file: the rules of a user are not UTF-8, so the settings file \
             cannot hold them; use aclfile",
        )
    })
}

const HELP_TITLE: &str = "CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";

#[rustfmt::skip]
const HELP: &[&str] = &[
    "GET <pattern>",
    "    Return parameters matching the glob-like <pattern> and their values.",
    "SET <directive> <value>",
    "    Set the configuration <directive> to <value>.",
    "RESETSTAT",
    "    Reset statistics reported by the INFO command.",
    "REWRITE",
    "    Rewrite the configuration file.",
];
