//! Counts and shows the commands that scripts call.

use std::sync::Arc;

use super::access::AccessControl;
use super::monitors::Monitors;
use super::statistics::ServerStatistics;
use quoin_data::table;
use quoin_data::unit::script_calls::{CallResult, ScriptCall, ScriptCalls};

/// Where the executor tells them.
pub(super) struct CallCounter {
    pub(super) statistics: Arc<ServerStatistics>,
    pub(super) monitors: Arc<Monitors>,
    pub(super) access: Arc<AccessControl>,
}

impl ScriptCalls for CallCounter {
    fn are_shown(&self) -> bool {
        !self.monitors.is_empty()
    }

    fn tell(&self, call: &ScriptCall) {
        if let Some(code) = &call.error {
            self.statistics.record_error(code);
        }
        let Some(command_id) = call.command_id else {
            return;
        };
        let is_failed = match call.result {
            CallResult::Rejected => {
                self.statistics.record_rejection(command_id);
                if let Some(refused) = &call.refused {
                    let (client, refused) = &**refused;
                    self.access.note_refused_call(*client, refused);
                }
                return;
            }
            result => result == CallResult::Failed,
        };
        self.statistics.commands_processed.add(1);
        self.statistics
            .record_call(command_id, call.duration, is_failed);
        if let (Some((database, arguments)), Some(row)) =
            (&call.shown, table::all().get(command_id))
        {
            self.monitors.note_script(row, *database, arguments);
        }
    }
}
