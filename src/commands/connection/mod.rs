//! The rows of the commands that the server carries out itself.

use super::row::{
    ConnectionCommand, Flags, Group, Handler, KeyPositions, KeyUse, PureHandler, Row,
};

mod client;
mod containers;
mod pure;
mod rows;

pub use rows::ROWS;

const fn server_row(name: &'static str, arity: i32, command: ConnectionCommand) -> Row {
    Row {
        name,
        arity,
        flags: Flags::NONE,
        keys: KeyPositions::None,
        key_use: KeyUse::Read,
        since: "1.0.0",
        group: Group::Connection,
        summary: "",
        complexity: "O(1)",
        handler: Handler::Connection(command),
        subcommands: &[],
        plan: None,
        waits: None,
    }
}

const fn pure_row(name: &'static str, arity: i32, handler: PureHandler) -> Row {
    Row {
        handler: Handler::Pure(handler),
        ..server_row(name, arity, ConnectionCommand::Quit)
    }
}
