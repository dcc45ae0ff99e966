//! What the functions of a machine share: how its scripts end, how much memory outside Lua they may use, and the
//! numbers of Redis's `math.random`.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::sync::Arc;

use mlua::{Error, HookTriggers, Lua, Result, VmState};

use super::functions::Function;
use super::json_settings;
use super::running::Run;
use quoin_base::limits::SCRIPT_MEMORY_BYTES_MAX;
use quoin_base::redis_version::RedisVersion;
use quoin_resp::reply::Reply;

/// Instructions between two looks whether a script is to be ended.
const INSTRUCTIONS_PER_LOOK: u32 = 2_000;

/// The same for one that uses much memory: each instruction may copy a part of it.
const INSTRUCTIONS_PER_LOOK_LARGE: u32 = 100;

/// Bytes from which on a script uses much.
const LARGE_BYTES: usize = 16 * 1024 * 1024;

/// Steps of work outside Lua between two looks. A step is about a byte that is read or written.
const STEPS_PER_LOOK: usize = 100_000;

/// Frames that are searched for a line of a script.
const FRAMES_MAX: usize = 16;

/// How a script has ended.
#[derive(Debug, PartialEq)]
pub enum End {
    /// With this reply. An error is one that the script has returned.
    Replied(Reply, Origin),
    /// With an error that it has not caught: the error line.
    Failed(String, Origin),
    /// By SCRIPT KILL: the error line.
    Killed(String),
    /// It took too long.
    Late,
    /// Its run was given up, [`Commands`](super::Commands) have ended it, or the server stops.
    Aborted,
}

/// The error of a script that SCRIPT KILL has ended, without the place.
pub const KILLED_LINE: &str = "ERR Script killed by user with SCRIPT KILL...";

/// The origin of the error that ends a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The script itself.
    Script,
    /// A command that the script has called. It is one error for both.
    Call,
}

/// Why a script is ended before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Killed,
    Late,
    Aborted,
}

/// The functions of a library.
#[derive(Debug)]
pub(super) struct Registered {
    pub(super) described: Vec<Function>,
    /// By their names. Lua owns them: the bindings have room for some thousand references.
    pub(super) by_name: mlua::Table,
}

/// What the functions of a machine share.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The version of Redis that scripts are told.
    pub(super) version: RedisVersion,
    pub(super) is_resp3: Cell<bool>,
    pub(super) random: Random,
    pub(super) json: Rc<json_settings::Settings>,
    pub(super) stopping: Cell<Option<Stop>>,
    /// The place at which the script was ended: the source and the line.
    pub(super) stopped_at: RefCell<Option<(String, i64)>>,
    pub(super) run: RefCell<Option<Arc<Run>>>,
    /// Steps until the next look.
    steps_left: Cell<usize>,
    /// What a library has registered, while it is loaded.
    pub(super) registered: RefCell<Option<Registered>>,
}

impl State {
    pub(super) fn new(version: RedisVersion) -> Self {
        Self {
            version,
            ..Self::default()
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.get().is_some()
    }

    /// Creates values of Lua from data that the server already has, and checks the memory limit afterwards.
    /// With a limit the bindings protect each allocation by a call, which costs more than the allocation.
    pub(super) fn make<T>(&self, lua: &Lua, make: impl FnOnce() -> Result<T>) -> Result<T> {
        lua.set_memory_limit(0)?;
        let made = make();
        lua.set_memory_limit(SCRIPT_MEMORY_BYTES_MAX)?;
        if lua.used_memory() > SCRIPT_MEMORY_BYTES_MAX {
            return Err(mlua::Error::MemoryError("not enough memory".to_owned()));
        }
        made
    }

    /// From now on each instruction fails, whatever the script catches.
    pub(super) fn stop(self: &Rc<Self>, lua: &Lua, why: Stop) -> Result<()> {
        self.stopping.set(Some(why));
        self.look_every(lua, 1)
    }

    /// Before a script runs.
    pub(super) fn begin(self: &Rc<Self>, lua: &Lua, run: Arc<Run>) -> Result<()> {
        *self.run.borrow_mut() = Some(run);
        self.look_as_needed(lua)
    }

    /// Installs a hook that checks as often as the memory in use requires. Installed again each time: each
    /// coroutine has its own hook, and another coroutine may have had the last one.
    fn look_as_needed(self: &Rc<Self>, lua: &Lua) -> Result<()> {
        let instructions = match lua.used_memory() < LARGE_BYTES {
            true => INSTRUCTIONS_PER_LOOK,
            false => INSTRUCTIONS_PER_LOOK_LARGE,
        };
        match self.is_stopping() {
            true => Ok(()),
            false => self.look_every(lua, instructions),
        }
    }

    fn look_every(self: &Rc<Self>, lua: &Lua, instructions: u32) -> Result<()> {
        let own = Rc::clone(self);
        let triggers = HookTriggers::new().every_nth_instruction(instructions);
        lua.set_global_hook(triggers, move |lua, place| own.look(lua, place))
    }

    /// Takes steps of work outside Lua. Whether it is time to look whether the script is to be ended.
    pub(super) fn spend(&self, steps: usize) -> bool {
        let left = self.steps_left.get().checked_sub(steps);
        self.steps_left.set(left.unwrap_or(STEPS_PER_LOOK));
        left.is_none()
    }

    /// The same. Returns whether the work may continue.
    pub(super) fn go_on_after(&self, steps: usize) -> bool {
        !self.spend(steps) || self.due().is_none()
    }

    /// Whether the script is to be ended.
    pub(super) fn is_due(&self) -> bool {
        self.due().is_some()
    }

    /// Why the script is to be ended, if it is.
    fn due(&self) -> Option<Stop> {
        match (self.stopping.get(), &*self.run.borrow()) {
            (Some(why), _) => Some(why),
            (None, Some(run)) if run.is_ended() => Some(Stop::Aborted),
            (None, Some(run)) if run.is_killed() => Some(Stop::Killed),
            (None, Some(run)) if run.is_late() => Some(Stop::Late),
            _ => None,
        }
    }

    /// Ends the script if it is to be ended. For long work without instructions of Lua.
    ///
    /// # Errors
    /// It is ended.
    pub(super) fn end_if_due(self: &Rc<Self>, lua: &Lua) -> Result<()> {
        let Some(why) = self.due() else {
            return self.look_as_needed(lua);
        };
        if !self.is_stopping() {
            let (source, line) = place_in_script(lua).unwrap_or((None, -1));
            *self.stopped_at.borrow_mut() = Some((source.unwrap_or_default(), line));
        }
        self.stop(lua, why)?;
        Err(ended())
    }

    fn look(self: &Rc<Self>, lua: &Lua, place: &mlua::debug::Debug<'_>) -> Result<VmState> {
        let Some(why) = self.due() else {
            self.look_as_needed(lua)?;
            return Ok(VmState::Continue);
        };
        if self.stopping.get().is_none() {
            let source = place.source().source.map(|source| source.into_owned());
            let line = place
                .current_line()
                .and_then(|line| i64::try_from(line).ok());
            *self.stopped_at.borrow_mut() = Some((source.unwrap_or_default(), line.unwrap_or(-1)));
        }
        // Coroutines have hooks of their own.
        self.stop(lua, why)?;
        Err(ended())
    }
}

/// The source and the line of what a function of C was called by. Functions of C have no lines: what counts
/// is who called them.
pub(super) fn place_in_script(lua: &Lua) -> Option<(Option<String>, i64)> {
    let place = |level| {
        lua.inspect_stack(level, |frame| {
            let source = frame.source();
            let line = frame
                .current_line()
                .and_then(|line| i64::try_from(line).ok());
            (
                source.source.as_deref() == Some("=[C]"),
                source.source.map(|source| source.into_owned()),
                line.unwrap_or(-1),
            )
        })
    };
    let found = (0..FRAMES_MAX).map_while(place).find(|(is_c, ..)| !is_c);
    found.map(|(_, source, line)| (source, line))
}

/// The error that ends a script, which no script can catch.
pub(super) fn ended() -> mlua::Error {
    mlua::Error::runtime("the script is ended")
}

/// Steps of a value besides its bytes.
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

    /// One more value of `bytes` bytes is built.
    ///
    /// # Errors
    /// As [`Self::reach`].
    pub(super) fn add(&mut self, bytes: usize) -> Result<()> {
        self.reach(self.bytes.saturating_add(bytes))
    }

    /// One more value is built, of `bytes` bytes in total.
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

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;

/// Redis: `REDIS_LRAND48_MAX`.
const LARGEST: u64 = i32::MAX as u64;

/// The state of the generator of a machine.
#[derive(Debug)]
pub(super) struct Random(Cell<u64>);

impl Default for Random {
    /// Begins with any number, so that machines differ.
    fn default() -> Self {
        Self(Cell::new(RandomState::new().hash_one(0) & MASK))
    }
}

impl Random {
    /// `math.randomseed`.
    pub(super) fn seed(&self, seed: i32) {
        let high = u64::from(seed.cast_unsigned());
        self.0.set(((high << 16) | 0x330E) & MASK);
    }

    /// From 0 to 1, without 1.
    pub(super) fn next(&self) -> f64 {
        let state = self
            .0
            .get()
            .wrapping_mul(MULTIPLIER)
            .wrapping_add(INCREMENT)
            & MASK;
        self.0.set(state);
        ((state >> 17) % LARGEST) as f64 / LARGEST as f64
    }
}
