//! ACL GETUSER, LIST and USERS.

use crate::state::ServerState;
use crate::user_store;
use quoin_acl::{Definition, Flag, Selector, file};
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

/// `ACL LIST`.
pub(super) async fn list(state: &ServerState) -> Result<Reply, CommandError> {
    user_store::refresh(state).await?;
    let users = state.access.users.all();
    let lines = users.iter().map(|user| Reply::bulk(file::line(user)));
    Ok(Reply::Array(lines.collect()))
}

/// `ACL USERS`.
pub(super) async fn names(state: &ServerState) -> Result<Reply, CommandError> {
    user_store::refresh(state).await?;
    let users = state.access.users.all();
    let names = users.iter().map(|user| Reply::Bulk(user.name().clone()));
    Ok(Reply::Array(names.collect()))
}

/// `ACL GETUSER username`.
pub(super) async fn user(name: &[u8], state: &ServerState) -> Result<Reply, CommandError> {
    user_store::refresh(state).await?;
    let user = state.access.users.find(name);
    Ok(user.map_or(Reply::Null, |user| describe(&user.definition())))
}

fn describe(user: &Definition) -> Reply {
    let flags = user.flags().map(Flag::name).map(Reply::bulk);
    let passwords = user.passwords().map(|hash| Reply::bulk(hash.to_owned()));
    let others = user.others().iter();
    let others = others.map(|selector| Reply::Map(selector_fields(selector)));
    let mut fields = vec![
        (Reply::bulk("flags"), Reply::Set(flags.collect())),
        (Reply::bulk("passwords"), Reply::Array(passwords.collect())),
    ];
    fields.extend(selector_fields(user.root()));
    fields.push((Reply::bulk("selectors"), Reply::Array(others.collect())));
    Reply::Map(fields)
}

fn selector_fields(selector: &Selector) -> Vec<(Reply, Reply)> {
    vec![
        (
            Reply::bulk("commands"),
            Reply::bulk(selector.command_rules()),
        ),
        (Reply::bulk("keys"), Reply::bulk(selector.keys())),
        (Reply::bulk("channels"), Reply::bulk(selector.channels())),
    ]
}
