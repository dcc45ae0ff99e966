//! CLIENT LIST and CLIENT INFO.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::super::{refusal, shown};
use crate::commands::arguments::{integer_or, is_word, rest};
use crate::commands::table;
use crate::error::CommandError;
use crate::limits::UNCOUNTED_OUTPUT_BYTES;
use crate::reply::Reply;
use crate::server::ServerState;
use crate::server::clients::ClientRecord;
use crate::server::pubsub::Scope;
use crate::server::session::Session;

/// Kinds of clients, of which Quoin has normal ones and subscribers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientType {
    /// Sends commands.
    Normal,
    /// Is subscribed to something.
    Pubsub,
    /// Another kind of Redis's.
    Other,
}

impl ClientType {
    pub(super) fn from_name(name: &[u8]) -> Result<Self, CommandError> {
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
                shown(name)
            )))
        }
    }
}

impl ClientType {
    pub(super) fn of(client: &ClientRecord) -> Self {
        if client.is_subscriber() {
            ClientType::Pubsub
        } else {
            ClientType::Normal
        }
    }
}

/// `CLIENT INFO`.
pub(super) fn info(session: &Session, state: &ServerState) -> Reply {
    let mut text = String::new();
    put_line(&session.client, state.clock.now_ms(), &mut text);
    Reply::Verbatim("txt", text.into())
}

/// `CLIENT LIST [TYPE type | ID client-id [client-id …]]`.
pub(super) fn list(arguments: &[Bytes], state: &ServerState) -> Result<Reply, CommandError> {
    let mut text = String::new();
    match rest(arguments, 2) {
        [] => put_all(None, state, &mut text),
        [option, name] if is_word(option, "type") => {
            put_all(Some(ClientType::from_name(name)?), state, &mut text);
        }
        [option, ids @ ..] if !ids.is_empty() && is_word(option, "id") => {
            for id in ids {
                let id = integer_or(id, "ERR Invalid client ID")?;
                if let Some(client) = u64::try_from(id).ok().and_then(|id| state.clients.find(id)) {
                    put_line(&client, state.clock.now_ms(), &mut text);
                }
            }
        }
        _ => return Err(CommandError::Syntax),
    }
    Ok(Reply::Verbatim("txt", text.into()))
}

fn put_all(wanted: Option<ClientType>, state: &ServerState, text: &mut String) {
    let now_ms = state.clock.now_ms();
    for client in state.clients.all() {
        if wanted.is_none_or(|wanted| wanted == ClientType::of(&client)) {
            put_line(&client, now_ms, text);
        }
    }
}

/// A client as `CLIENT LIST` shows it, for the log.
pub(in crate::server) fn describe_client(client: &ClientRecord, now_ms: i64) -> String {
    let mut text = String::new();
    put_line(client, now_ms, &mut text);
    text.truncate(text.trim_end().len());
    text
}

/// All fields of Redis 7.2, in its order. Memory counts the buffers that the client makes the
/// server hold; events are always those of a client that is read from. There is one buffer of
/// replies: what Redis would have in its first 16 KiB stands in `obl`, what is beyond in `omem`,
/// with the messages that wait.
fn put_line(client: &ClientRecord, now_ms: i64, text: &mut String) {
    let now_s = now_ms / 1000;
    let details = client.details().clone();
    let mut flags = String::new();
    let is_spoilt = details
        .watched
        .as_ref()
        .is_some_and(|touched| touched.load(Ordering::SeqCst));
    for (is_set, letter) in [
        (client.is_subscriber(), 'P'),
        (details.queued_commands.is_some(), 'x'),
        (client.is_blocked(), 'b'),
        (is_spoilt, 'd'),
        (client.is_killed(), 'A'),
        (details.no_evict, 'e'),
        (details.no_touch, 'T'),
    ] {
        if is_set {
            flags.push(letter);
        }
    }
    if flags.is_empty() {
        flags.push('N');
    }
    let input = client.input_bytes.load(Ordering::Relaxed);
    let input_free = client.input_free_bytes.load(Ordering::Relaxed);
    let output = client.output_bytes.load(Ordering::Relaxed);
    let unsent = client.output_unsent_bytes.load(Ordering::Relaxed);
    let arguments = client.argument_bytes.load(Ordering::Relaxed);
    let transaction = client.transaction_bytes.load(Ordering::Relaxed);
    let (messages, message_bytes) = client.mailbox.waiting();
    let counted = unsent.saturating_sub(UNCOUNTED_OUTPUT_BYTES);
    let unsent = unsent - counted;
    let waiting = messages + usize::from(counted > 0);
    let waiting_bytes = message_bytes + counted as u64;
    let command = table::all()
        .get(client.shown_command())
        .map_or("NULL", |row| row.name);
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={flags} db={} sub={} psub={} \
         ssub={} multi={} qbuf={input} qbuf-free={input_free} argv-mem={arguments} multi-mem={transaction} \
         rbs={output} rbp={output} obl={unsent} oll={waiting} omem={waiting_bytes} tot-mem={} events=r cmd={command} user=default \
         redir=-1 resp={} lib-name={} lib-ver={}",
        client.id,
        client.address,
        client.local_address,
        client.file_descriptor,
        details.name,
        (now_s - client.connected_ms / 1000).max(0),
        (now_s - client.last_interaction_ms.load(Ordering::Relaxed) / 1000).max(0),
        details.database,
        client.subscribed(Scope::Channel),
        client.subscribed(Scope::Pattern),
        client.subscribed(Scope::Shard),
        details.queued_commands.unwrap_or(-1),
        (input + input_free + arguments + transaction + output) as u64 + message_bytes,
        details.protocol,
        details.library_name,
        details.library_version,
    );
}
