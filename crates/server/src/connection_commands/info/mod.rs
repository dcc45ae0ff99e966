//! INFO.

use bytes::Bytes;

use crate::state::ServerState;
use quoin_data::command::arguments::{is_word, rest};
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

mod data;
mod lines;
mod persistence;
mod sections;
mod traffic;

/// Sections in the order of the reply, each with whether it is shown by default.
#[rustfmt::skip]
const SECTIONS: &[(&str, bool)] = &[
    ("server", true),
    ("clients", true),
    ("memory", true),
    ("persistence", true),
    ("stats", true),
    ("replication", true),
    ("cpu", true),
    ("modules", true),
    ("commandstats", false),
    ("errorstats", true),
    ("latencystats", false),
    ("cluster", true),
    ("keyspace", true),
    ("quoin", true),
    // Redis shows it only where it is asked for by name.
    ("debug", false),
];

/// `INFO [section [section …]]`. Unknown sections are empty, as in Redis.
pub(super) async fn info(arguments: &[Bytes], state: &ServerState) -> Result<Reply, CommandError> {
    let wanted = rest(arguments, 1);
    let asks_for = |name: &str| wanted.iter().any(|word| is_word(word, name));
    let shows_all = asks_for("all") || asks_for("everything");
    let shows_default = wanted.is_empty() || asks_for("default");
    let mut text = String::new();
    for (name, is_default) in SECTIONS {
        let is_named = asks_for(name) || (*name == "modules" && asks_for("module_list"));
        let is_hidden = *name == "debug";
        if !((shows_all && !is_hidden) || (shows_default && *is_default) || is_named) {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        match *name {
            "server" => sections::server(state, &mut text),
            "clients" => sections::clients(state, &mut text),
            "memory" => sections::memory(state, &mut text),
            "persistence" => persistence::persistence(state, &mut text),
            "stats" => traffic::stats(state, &mut text),
            "replication" => sections::replication(state, &mut text),
            "cpu" => sections::cpu(&mut text),
            "modules" => text.push_str("# Modules\r\n"),
            "commandstats" => traffic::command_statistics(state, &mut text),
            "errorstats" => traffic::error_statistics(state, &mut text),
            "latencystats" => traffic::latency_statistics(state, &mut text),
            "cluster" => text.push_str("# Cluster\r\ncluster_enabled:0\r\n"),
            "keyspace" => data::keyspace(state, &mut text).await,
            "debug" => traffic::debug(&mut text),
            _ => data::quoin(state, &mut text),
        }
    }
    Ok(Reply::Verbatim("txt", text.into()))
}
