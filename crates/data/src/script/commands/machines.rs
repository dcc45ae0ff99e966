//! The machines of a thread. A machine stays on its thread and runs one script at a time; on a
//! cluster scripts of several batches are under way at once.

use std::cell::RefCell;

use quoin_base::limits::SCRIPT_MACHINES_KEPT_MAX;
use quoin_lua::Machine;

thread_local! {
    static IDLE: RefCell<Vec<Machine>> = const { RefCell::new(Vec::new()) };
}

/// A machine that runs nothing.
///
/// # Errors
/// The error line where there is none.
pub(super) fn take() -> Result<Machine, String> {
    match IDLE.with_borrow_mut(Vec::pop) {
        Some(machine) => Ok(machine),
        None => Machine::new().map_err(|reason| format!("ERR no machine for a script: {reason}")),
    }
}

/// Keeps a machine for the next script.
pub(super) fn give_back(machine: Machine) {
    if machine.is_reusable() {
        IDLE.with_borrow_mut(|idle| {
            if idle.len() < SCRIPT_MACHINES_KEPT_MAX {
                idle.push(machine);
            }
        });
    }
}
