//! CLIENT LIST and CLIENT INFO.

use bytes::Bytes;

use super::super::errors::{lossy_text, refusal};
use crate::clients::{ClientRecord, put_line};
use crate::session::Session;
use crate::state::ServerState;
use quoin_data::command::arguments::{integer_or, is_word, rest};
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

/// Types of clients. Quoin has normal ones and subscribers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientType {
    /// A client without subscriptions.
    Normal,
    /// A client with subscriptions.
    Pubsub,
    /// A type that only Redis has.
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
                lossy_text(name)
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
