//! Checks of a command against the rights of the client's user.

use bytes::Bytes;

use crate::connection::state::Connection;
use quoin_acl::log::Context;
use quoin_acl::{Denial, User};
use quoin_data::command::flags::Flags;
use quoin_data::command::row::Row;

impl Connection {
    /// The error line if the client's user may not run a command. A user that may do everything costs one
    /// read of a flag.
    pub(super) fn refusal(&self, row: &Row, arguments: &[Bytes]) -> Option<String> {
        if self.session.user.is_open() {
            return None;
        }
        self.refusal_of_restricted(row, arguments)
    }

    #[cold]
    fn refusal_of_restricted(&self, row: &Row, arguments: &[Bytes]) -> Option<String> {
        let user = &self.session.user;
        if user.is_deleted() {
            // The user was deleted while the client authenticated, or the client is about to be
            // disconnected.
            self.session.client.kill();
            return Some("NOAUTH Authentication required.".to_owned());
        }
        let is_open = self.session.transaction.is_some();
        if is_open && row.flags.contains(Flags::NO_MULTI) {
            // It is refused for that reason.
            return None;
        }
        let context = if is_open {
            Context::Multi
        } else {
            Context::Toplevel
        };
        // The log shows the client's current command.
        self.session.client.show_command(row.id);
        let denial = self.check(context, row, arguments).err()?;
        Some(format!("NOPERM {}", denial.message(user.name(), row)))
    }

    /// The error line if EXEC does not run a command that was allowed when it was queued.
    pub(super) fn refusal_in_exec(
        &self,
        user: &User,
        row: &Row,
        arguments: &[Bytes],
    ) -> Option<String> {
        if user.is_open() {
            return None;
        }
        let (access, client) = (&self.state.access, &self.session.client);
        let checked = access.check(user, client, Context::Multi, row, arguments);
        let denial = checked.err()?;
        Some(format!(
            "NOPERM ACLs rules changed between the moment the transaction was accumulated and the \
             EXEC call. This command is no longer allowed for the following reason: {}",
            denial.reason_in_exec()
        ))
    }

    /// Checks a command of the client's user, and enters it into the log if it is refused.
    pub(super) fn check(
        &self,
        context: Context,
        row: &Row,
        arguments: &[Bytes],
    ) -> Result<(), Denial> {
        let (user, client) = (&self.session.user, &self.session.client);
        let access = &self.state.access;
        access.check(user, client, context, row, arguments)
    }
}

/// Whether a user must not read keys that the values of a command's keys name.
pub(super) fn lacks_named_keys(user: &User, row: &Row, arguments: &[Bytes]) -> bool {
    !user.is_open()
        && row.names_keys_by_values()
        && !user.definition().reads_all_keys(row, arguments)
}
