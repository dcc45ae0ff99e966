//! Why a user may not run a command.

use bytes::Bytes;

use quoin_data::command::row::Row;

/// Why something is refused. The greater of two counts where selectors differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The command is not allowed.
    Command,
    /// A key is not allowed.
    Key,
    /// The name or the password is wrong.
    Auth,
    /// A channel is not allowed.
    Channel,
}

impl Reason {
    /// As ACL LOG names it.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
            Reason::Auth => "auth",
        }
    }
}

/// Why a user may not run a command with these arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Denial {
    /// What is not allowed.
    pub reason: Reason,
    /// The position of the key or the channel among the arguments.
    pub position: usize,
}

impl Denial {
    /// What ACL LOG calls the object: the command, the key or the channel.
    pub fn object(&self, row: &Row, arguments: &[Bytes]) -> Bytes {
        match self.reason {
            Reason::Command => Bytes::from_static(row.name.as_bytes()),
            _ => arguments.get(self.position).cloned().unwrap_or_default(),
        }
    }

    /// What the client is told, after the error's code.
    pub fn message(&self, user: &[u8], row: &Row) -> String {
        match self.reason {
            Reason::Key => "No permissions to access a key".to_owned(),
            Reason::Channel => "No permissions to access a channel".to_owned(),
            Reason::Command | Reason::Auth => format!(
                "User {} has no permissions to run the '{}' command",
                String::from_utf8_lossy(user),
                row.name
            ),
        }
    }

    /// What ACL DRYRUN answers.
    pub fn detail(&self, user: &[u8], row: &Row, arguments: &[Bytes]) -> Vec<u8> {
        let what: &[u8] = match self.reason {
            Reason::Command | Reason::Auth => return self.message(user, row).into_bytes(),
            Reason::Key => b"' key",
            Reason::Channel => b"' channel",
        };
        let object = self.object(row, arguments);
        let parts = [
            b"User ",
            user,
            b" has no permissions to access the '",
            &object,
            what,
        ];
        parts.concat()
    }

    /// Why EXEC does not run a command that was allowed when it was queued.
    pub fn reason_in_exec(&self) -> &'static str {
        match self.reason {
            Reason::Command => "no permission to execute the command or subcommand",
            Reason::Key => "no permission to touch the specified keys",
            Reason::Channel => {
                "no permission to access one of the channels used as arguments to the command"
            }
            Reason::Auth => "no permission",
        }
    }
}
