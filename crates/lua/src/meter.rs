//! What the server builds for a script outside Lua, where neither Lua's memory limit nor its hook
//! reaches: replies and the texts of `cjson.encode` and `cmsgpack.pack`. A few tables that lie in each
//! other many times can become any amount of it.

use std::rc::Rc;

use mlua::{Error, Lua, Result};

use super::state::State;
use quoin_base::limits::SCRIPT_MEMORY_BYTES_MAX;

/// Steps that a value takes beside its bytes.
const VALUE_STEPS: usize = 10;

/// What is built at one time.
pub(super) struct Meter<'s> {
    lua: &'s Lua,
    state: &'s Rc<State>,
    bytes: usize,
}

impl<'s> Meter<'s> {
    pub(super) fn new(lua: &'s Lua, state: &'s Rc<State>) -> Self {
        Self {
            lua,
            state,
            bytes: 0,
        }
    }

    /// One more value of so many bytes is built.
    ///
    /// # Errors
    /// As [`Self::reach`].
    pub(super) fn add(&mut self, bytes: usize) -> Result<()> {
        self.reach(self.bytes.saturating_add(bytes))
    }

    /// One more value is built, and it is so many bytes in all.
    ///
    /// # Errors
    /// It is more than a script may use, or the script is to be ended.
    pub(super) fn reach(&mut self, bytes: usize) -> Result<()> {
        if bytes > SCRIPT_MEMORY_BYTES_MAX {
            return Err(Error::MemoryError("not enough memory".to_owned()));
        }
        let steps = VALUE_STEPS + bytes.saturating_sub(self.bytes);
        self.bytes = bytes;
        match self.state.spend(steps) {
            true => self.state.end_if_due(self.lua),
            false => Ok(()),
        }
    }
}
