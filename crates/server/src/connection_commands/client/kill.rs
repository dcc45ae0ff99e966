//! CLIENT KILL.

use std::sync::Arc;

use bytes::Bytes;

use super::super::errors::{lossy_text, refusal};
use super::list::ClientType;
use crate::clients::ClientRecord;
use crate::endpoint::Endpoint;
use crate::session::Session;
use crate::state::ServerState;
use quoin_acl::User;
use quoin_data::command::arguments::{integer_at_least, is_word, rest};
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

/// Which clients to kill: those to which all given conditions apply.
#[derive(Debug)]
struct Filter<'a> {
    id: Option<u64>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    client_type: Option<ClientType>,
    user: Option<Arc<User>>,
    spares_caller: bool,
}

/// `CLIENT KILL ip:port`, or `CLIENT KILL` with options.
pub(super) fn kill(
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let (filter, is_old_form) = match rest(arguments, 2) {
        [address] => {
            let filter = Filter {
                id: None,
                address: Some(address),
                local_address: None,
                client_type: None,
                user: None,
                spares_caller: false,
            };
            (filter, true)
        }
        options => (parse(options, state)?, false),
    };
    let mut count = 0;
    for client in state.clients.all() {
        let is_caller = client.id == session.client.id;
        if !filter.matches(&client) || (is_caller && filter.spares_caller) {
            continue;
        }
        count += 1;
        if is_caller {
            // After the reply.
            session.is_closing = true;
        } else {
            client.kill();
        }
    }
    match (is_old_form, count) {
        (false, count) => Ok(Reply::Integer(count)),
        (true, 0) => Err(CommandError::text("ERR No such client")),
        (true, _) => Ok(Reply::OK),
    }
}

fn parse<'a>(options: &'a [Bytes], state: &ServerState) -> Result<Filter<'a>, CommandError> {
    let mut filter = Filter {
        id: None,
        address: None,
        local_address: None,
        client_type: None,
        user: None,
        spares_caller: true,
    };
    for pair in options.chunks(2) {
        let [option, value] = pair else {
            return Err(CommandError::Syntax);
        };
        if is_word(option, "id") {
            let message = "ERR client-id should be greater than 0";
            filter.id = u64::try_from(integer_at_least(value, 1, message)?).ok();
        } else if is_word(option, "type") {
            filter.client_type = Some(ClientType::from_name(value)?);
        } else if is_word(option, "addr") {
            filter.address = Some(value);
        } else if is_word(option, "laddr") {
            filter.local_address = Some(value);
        } else if is_word(option, "user") {
            let user = state.access.users.find(value);
            filter.user = Some(
                user.ok_or_else(|| refusal(format!("ERR No such user '{}'", lossy_text(value))))?,
            );
        } else if is_word(option, "skipme") {
            filter.spares_caller = if is_word(value, "yes") {
                true
            } else if is_word(value, "no") {
                false
            } else {
                return Err(CommandError::Syntax);
            };
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok(filter)
}

impl Filter<'_> {
    fn matches(&self, client: &ClientRecord) -> bool {
        let is_at = |wanted: Option<&[u8]>, address: &Endpoint| {
            wanted.is_none_or(|wanted| wanted == address.to_string().as_bytes())
        };
        is_at(self.address, &client.address)
            && is_at(self.local_address, &client.local_address)
            && self
                .client_type
                .is_none_or(|wanted| wanted == ClientType::of(client))
            && self.id.is_none_or(|wanted| wanted == client.id)
            && self
                .user
                .as_ref()
                .is_none_or(|wanted| Arc::ptr_eq(wanted, &client.user()))
    }
}
