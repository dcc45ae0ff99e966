//! State that the functions of a machine share: when its scripts should end, how much memory
//! outside Lua they may use, and the numbers of Redis's `math.random`.

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

/// Number of instructions between two checks whether a script should end.
const INSTRUCTIONS_PER_CHECK: u32 = 2_000;

/// The same for a script that uses much memory, because each instruction may copy part of it.
const INSTRUCTIONS_PER_CHECK_LARGE: u32 = 100;

/// From this many bytes on, a script uses much memory.
const LARGE_BYTES: usize = 16 * 1024 * 1024;

/// Steps of work outside Lua between two checks. A step is about one byte read or written.
const STEPS_PER_CHECK: usize = 100_000;

/// Frames that are searched for a line of a script.
const FRAMES_MAX: usize = 16;

/// How a script has ended.
#[derive(Debug, PartialEq)]
pub enum End {
    /// With this reply. If it is an error, the script returned it.
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

/// The error of a script that SCRIPT KILL has ended, without the position.
pub const KILLED_LINE: &str = "ERR Script killed by user with SCRIPT KILL...";

/// The origin of the error that ends a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The script itself.
    Script,
    /// A command that the script called. The error is counted once for both.
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
    /// By name. Lua owns them, because the bindings have room for only some thousand references.
    pub(super) by_name: mlua::Table,
}

/// State that the functions of a machine share.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The version of Redis that scripts see.
    pub(super) version: RedisVersion,
    pub(super) is_resp3: Cell<bool>,
    pub(super) random: Random,
    pub(super) json: Rc<json_settings::Settings>,
    pub(super) stopping: Cell<Option<Stop>>,
    /// Where the script was ended: the source and the line.
    pub(super) stopped_at: RefCell<Option<(String, i64)>>,
    pub(super) run: RefCell<Option<Arc<Run>>>,
    /// Steps until the next check.
    steps_left: Cell<usize>,
    /// What a library has registered while it is loaded.
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

    /// Creates Lua values from data that the server already has, and checks the memory limit
    /// afterwards. With a limit, the bindings would protect each allocation with a call that costs
    /// more than the allocation.
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
        self.check_every(lua, 1)
    }

    /// Before a script runs.
    pub(super) fn begin(self: &Rc<Self>, lua: &Lua, run: Arc<Run>) -> Result<()> {
        *self.run.borrow_mut() = Some(run);
        self.check_as_needed(lua)
    }

    /// Installs a hook that checks as often as the memory in use requires. It must be installed
    /// again each time, because each coroutine has its own hook, and the last one may have been in
    /// another coroutine.
    fn check_as_needed(self: &Rc<Self>, lua: &Lua) -> Result<()> {
        let instructions = match lua.used_memory() < LARGE_BYTES {
            true => INSTRUCTIONS_PER_CHECK,
            false => INSTRUCTIONS_PER_CHECK_LARGE,
        };
        match self.is_stopping() {
            true => Ok(()),
            false => self.check_every(lua, instructions),
        }
    }

    fn check_every(self: &Rc<Self>, lua: &Lua, instructions: u32) -> Result<()> {
        let own = Rc::clone(self);
        let triggers = HookTriggers::new().every_nth_instruction(instructions);
        lua.set_global_hook(triggers, move |lua, place| own.check(lua, place))
    }

    /// Counts steps of work outside Lua. Returns whether it is time to check if the script should
    /// end.
    pub(super) fn spend(&self, steps: usize) -> bool {
        let left = self.steps_left.get().checked_sub(steps);
        self.steps_left.set(left.unwrap_or(STEPS_PER_CHECK));
        left.is_none()
    }

    /// The same. Returns whether the work may continue.
    pub(super) fn go_on_after(&self, steps: usize) -> bool {
        !self.spend(steps) || self.due().is_none()
    }

    /// Whether the script should end.
    pub(super) fn is_due(&self) -> bool {
        self.due().is_some()
    }

    /// Why the script should end, if it should.
    fn due(&self) -> Option<Stop> {
        match (self.stopping.get(), &*self.run.borrow()) {
            (Some(why), _) => Some(why),
            (None, Some(run)) if run.is_ended() => Some(Stop::Aborted),
            (None, Some(run)) if run.is_killed() => Some(Stop::Killed),
            (None, Some(run)) if run.is_late() => Some(Stop::Late),
            _ => None,
        }
    }

    /// Ends the script if it should end. For long work without Lua instructions.
    ///
    /// # Errors
    /// If the script should end.
    pub(super) fn end_if_due(self: &Rc<Self>, lua: &Lua) -> Result<()> {
        let Some(why) = self.due() else {
            return self.check_as_needed(lua);
        };
        if !self.is_stopping() {
            let (source, line) = place_in_script(lua).unwrap_or((None, -1));
            *self.stopped_at.borrow_mut() = Some((source.unwrap_or_default(), line));
        }
        self.stop(lua, why)?;
        Err(ended())
    }

    fn check(self: &Rc<Self>, lua: &Lua, place: &mlua::debug::Debug<'_>) -> Result<VmState> {
        let Some(why) = self.due() else {
            self.check_as_needed(lua)?;
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

/// The source and line of the code that called a C function. C functions have no lines, so the
/// caller's counts.
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

/// The error that ends a script. No script can catch it.
pub(super) fn ended() -> mlua::Error {
    mlua::Error::runtime("the script is ended")
}

/// Steps of a value besides its bytes.
const VALUE_STEPS: usize = 10;

/// Measures what is being built.
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

    /// Counts another value of `bytes` bytes.
    ///
    /// # Errors
    /// Those of [`Self::reach`].
    pub(super) fn add(&mut self, bytes: usize) -> Result<()> {
        self.reach(self.bytes.saturating_add(bytes))
    }

    /// Counts another value, with `bytes` bytes in total so far.
    ///
    /// # Errors
    /// If that is more than a script may use, or the script should end.
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
    /// Begins with an arbitrary number, so that machines differ.
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
