//! What the users of this server's clients may do, asked where commands run: for what scripts call, and
//! for commands that waited.

use std::sync::Arc;

use bytes::Bytes;

/// Who knows what clients may do: this server.
pub trait Rights: Send + Sync {
    /// The rights of a client of this number; `None` where it may do everything, as
    /// [`NO_CLIENT`](crate::unit::tracking::NO_CLIENT) may. A number that no client has may do nothing.
    fn of(&self, client: u64) -> Option<Arc<dyn ClientRights>>;
}

/// What a client may do.
pub trait ClientRights: Send + Sync {
    /// Whether it may run the command of this place in the table with these arguments.
    ///
    /// # Errors
    /// Why not.
    fn check(&self, command_id: usize, arguments: &[Bytes]) -> Result<(), RefusedCall>;

    /// Whether it may run the command by rights that cover the values of all keys.
    fn reads_all_keys(&self, command_id: usize, arguments: &[Bytes]) -> bool;
}

/// What is not allowed of a command that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedPart {
    /// The command itself.
    Command,
    /// A key.
    Key,
    /// A channel.
    Channel,
}

/// A command that a client may not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedCall {
    /// What is not allowed of it.
    pub part: RefusedPart,
    /// The command's name, the key or the channel.
    pub object: Bytes,
    /// The client's user.
    pub user: Bytes,
    /// What the client is told, after the error's code.
    pub message: String,
}
