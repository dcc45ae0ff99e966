//! A machine: Lua on a fiber, which runs one script after the other.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use mlua::{Function, Lua, LuaOptions, Result, StdLib, Table, Value};

use super::running::Run;
use super::script::Script;
use super::state::{Answer, Ask, Desk, End, Event, Order, State, Stop};
use super::{api, raw, sandbox, values};
use crate::limits::{
    SCRIPT_MEMORY_BYTES_MAX, SCRIPT_MEMORY_KEPT_BYTES_MAX, SCRIPT_STACK_BYTES, SCRIPTS_COMPILED_MAX,
};

/// Instructions between two looks whether a script is to be ended.
const INSTRUCTIONS_PER_LOOK: u32 = 10_000;
/// Frames in which the line of an error is looked for.
const FRAMES_MAX: usize = 16;
/// How often a script that is ended may call commands before its machine is given up.
const ABORTS_MAX: usize = 10_000;

/// What a machine does next.
#[derive(Debug)]
pub enum Step {
    /// The script calls a command and needs its reply.
    Calls(Vec<Bytes>),
    /// The script asks whether its user may call a command. An error is raised, anything else is
    /// yes.
    Checks(Vec<Bytes>),
    /// The script has ended.
    Ended(End),
}

/// A machine. It runs one script at a time and stays on its thread.
pub struct Machine {
    fiber: Coroutine<Order, Event, ()>,
    is_running: bool,
    is_spent: bool,
}

impl Machine {
    /// A machine that has run nothing.
    ///
    /// # Errors
    /// Why there is none: no memory.
    pub fn new() -> std::result::Result<Self, String> {
        let stack = DefaultStack::new(SCRIPT_STACK_BYTES).map_err(|error| error.to_string())?;
        let fiber = Coroutine::with_stack(stack, run_fiber);
        let mut machine = Self {
            fiber,
            is_running: false,
            is_spent: false,
        };
        match machine.fiber.resume(Order::Answer(Answer::Abort)) {
            CoroutineResult::Yield(Event::Idle) => Ok(machine),
            CoroutineResult::Yield(Event::Broken(reason)) => Err(reason),
            _ => Err("a machine for scripts does not start".to_owned()),
        }
    }

    /// Runs a script until it asks or ends.
    pub fn begin(
        &mut self,
        script: &Arc<Script>,
        keys: Vec<Bytes>,
        arguments: Vec<Bytes>,
        run: &Arc<Run>,
    ) -> Step {
        self.is_running = true;
        self.resume(Order::Run {
            script: Arc::clone(script),
            keys,
            arguments,
            run: Arc::clone(run),
        })
    }

    /// Goes on with a script that has asked.
    pub fn answer(&mut self, answer: Answer) -> Step {
        self.resume(Order::Answer(answer))
    }

    /// Compiles a script.
    ///
    /// # Errors
    /// Redis's error line where it is no Lua.
    pub fn compile(&mut self, script: &Arc<Script>) -> std::result::Result<(), String> {
        match self.fiber.resume(Order::Compile(Arc::clone(script))) {
            CoroutineResult::Yield(Event::Compiled(result)) => result,
            _ => {
                self.is_spent = true;
                Err("ERR Error compiling script".to_owned())
            }
        }
    }

    /// Whether it may run another script.
    pub fn is_reusable(&self) -> bool {
        !self.is_running && !self.is_spent
    }

    fn resume(&mut self, order: Order) -> Step {
        let event = match self.fiber.done() {
            true => None,
            false => match self.fiber.resume(order) {
                CoroutineResult::Yield(event) => Some(event),
                CoroutineResult::Return(()) => None,
            },
        };
        match event {
            Some(Event::Asks(Ask::Call(arguments))) => Step::Calls(arguments),
            Some(Event::Asks(Ask::Check(arguments))) => Step::Checks(arguments),
            Some(Event::Ended { end, is_spent }) => {
                self.is_running = false;
                self.is_spent = is_spent;
                Step::Ended(end)
            }
            _ => {
                self.is_running = false;
                self.is_spent = true;
                Step::Ended(End::Failed(
                    "ERR the script's machine has failed".to_owned(),
                ))
            }
        }
    }
}

impl Drop for Machine {
    /// A fiber is never unwound: the script on it is ended by errors of its own.
    fn drop(&mut self) {
        for _ in 0..ABORTS_MAX {
            if !self.is_running {
                break;
            }
            self.answer(Answer::Abort);
        }
        if !self.fiber.done() {
            self.fiber.resume(Order::Stop);
        }
    }
}

/// Lua and what it needs to run scripts.
struct Engine<'l> {
    lua: &'l Lua,
    state: Rc<State>,
    /// What scripts see as globals.
    globals: Table,
    /// Calls a function, and returns whether it succeeded, and its result or error.
    runner: Function,
    compiled: RefCell<HashMap<String, Function>>,
}

fn run_fiber(yielder: &Yielder<Order, Event>, _: Order) {
    let served = open().and_then(|(lua, state)| {
        lua.scope(|scope| {
            let redis = api::library(&lua, scope, &state, Desk(yielder))?;
            let runner = runner(&lua)?;
            let handler: Function = runner.1;
            let globals = sandbox::close(&lua, &state, redis)?;
            globals.raw_set("__redis__err__handler", handler)?;
            state.look_every(&lua, INSTRUCTIONS_PER_LOOK)?;
            let engine = Engine {
                lua: &lua,
                state: Rc::clone(&state),
                globals,
                runner: runner.0,
                compiled: RefCell::default(),
            };
            engine.serve(yielder);
            Ok(())
        })
    });
    if let Err(error) = served {
        yielder.suspend(Event::Broken(error.to_string()));
    }
}

fn open() -> Result<(Lua, Rc<State>)> {
    let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
    let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
    lua.set_memory_limit(SCRIPT_MEMORY_BYTES_MAX)?;
    Ok((lua, Rc::new(State::default())))
}

/// The function that runs scripts, and what makes errors tables that say where they were raised.
fn runner(lua: &Lua) -> Result<(Function, Function)> {
    let to_text: Function = lua.globals().raw_get("tostring")?;
    let handler = lua.create_function(move |lua, error: Value| {
        if matches!(error, Value::Error(_)) {
            return Ok(error);
        }
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
        // Functions of C have no lines: what counts is who called them.
        let found = (0..FRAMES_MAX).map_while(place).find(|(is_c, ..)| !is_c);
        let table = match error {
            Value::Table(table) => table,
            error => {
                let text = match lua.coerce_string(error.clone())? {
                    Some(text) => text.as_bytes().to_vec(),
                    None => to_text.call::<mlua::LuaString>(error)?.as_bytes().to_vec(),
                };
                let table = lua.create_table()?;
                let line = [b"ERR ".as_slice(), &text].concat();
                table.raw_set("err", lua.create_string(line)?)?;
                table
            }
        };
        if let Some((_, source, line)) = found {
            table.raw_set("source", source)?;
            table.raw_set("line", line)?;
        }
        Ok(Value::Table(table))
    })?;
    let code = "local xpcall, handler = ... return function(f) return xpcall(f, handler) end";
    let protected: Function = lua.globals().raw_get("xpcall")?;
    let runner = lua
        .load(code)
        .set_name("=quoin")
        .call::<Function>((protected, handler.clone()))?;
    Ok((runner, handler))
}

impl Engine<'_> {
    fn serve(&self, yielder: &Yielder<Order, Event>) {
        let mut event = Event::Idle;
        loop {
            event = match yielder.suspend(event) {
                Order::Run {
                    script,
                    keys,
                    arguments,
                    run,
                } => {
                    let end = self.run(&script, &keys, &arguments, run);
                    let used = self.lua.used_memory();
                    let is_spent = self.state.is_stopping() || used > SCRIPT_MEMORY_KEPT_BYTES_MAX;
                    Event::Ended { end, is_spent }
                }
                Order::Compile(script) => Event::Compiled(self.function(&script).map(drop)),
                Order::Answer(_) => Event::Idle,
                Order::Stop => return,
            };
        }
    }

    fn run(&self, script: &Script, keys: &[Bytes], arguments: &[Bytes], run: Arc<Run>) -> End {
        self.state.is_resp3.set(false);
        self.state.json.reset();
        *self.state.run.borrow_mut() = Some(run);
        let end = self.run_prepared(script, keys, arguments);
        *self.state.run.borrow_mut() = None;
        let end = end.unwrap_or_else(|error| {
            let reason = match error {
                mlua::Error::MemoryError(_) => "not enough memory".to_owned(),
                error => error.to_string(),
            };
            End::Failed(format!("ERR Error running script {}, {reason}", script.sha))
        });
        match self.state.stopping.get() {
            None => end,
            Some(Stop::Late) => End::Late,
            Some(Stop::Aborted) => End::Aborted,
            Some(Stop::Killed) => {
                let place = self.state.stopped_at.borrow();
                let place = place.as_ref().map_or_else(String::new, |(source, line)| {
                    format!(" script: {}, on {source}:{line}.", script.sha)
                });
                let text = "ERR Script killed by user with SCRIPT KILL...";
                End::Killed(format!("{text}{place}"))
            }
        }
    }

    fn run_prepared(&self, script: &Script, keys: &[Bytes], arguments: &[Bytes]) -> Result<End> {
        let function = match self.function(script) {
            Ok(function) => function,
            Err(line) => return Ok(End::Failed(line)),
        };
        for (name, values) in [("KEYS", keys), ("ARGV", arguments)] {
            let table = self.lua.create_table_with_capacity(values.len(), 0)?;
            for (place, value) in (1_i64..).zip(values) {
                table.raw_set(place, self.lua.create_string(value)?)?;
            }
            self.globals.raw_set(name, table)?;
        }
        let (is_done, value): (bool, Value) = self.runner.call(function)?;
        self.lua.gc_restart();
        if is_done {
            let reply = values::to_reply(&value, self.state.is_resp3.get())?;
            return Ok(End::Replied(reply));
        }
        Ok(End::Failed(self.error_line(script, &value)?))
    }

    /// The error line of a script that has raised this.
    fn error_line(&self, script: &Script, error: &Value) -> Result<String> {
        let Value::Table(table) = error else {
            let text = match self.lua.coerce_string(error.clone())? {
                Some(text) => text.to_string_lossy(),
                None => "execution failure".to_owned(),
            };
            return Ok(format!("ERR Error running script {}, {text}", script.sha));
        };
        let text = |name: &str| -> Result<Option<String>> {
            let value = table.raw_get::<Value>(name)?;
            let text = self.lua.coerce_string(value)?;
            Ok(text.map(|text| text.to_string_lossy()))
        };
        let mut line = text("err")?.unwrap_or_else(|| "ERR unknown error".to_owned());
        if let (Some(source), Some(number)) = (text("source")?, text("line")?) {
            line.push_str(&format!(" script: {}, on {source}:{number}.", script.sha));
        }
        Ok(line.replace(['\r', '\n'], " "))
    }

    /// The script's function, compiled if this machine has not seen it.
    fn function(&self, script: &Script) -> std::result::Result<Function, String> {
        if let Some(function) = self.compiled.borrow().get(&script.sha) {
            return Ok(function.clone());
        }
        let failed = |reason: String| {
            let line = format!("ERR Error compiling script (new function): {reason}");
            line.replace(['\r', '\n'], " ")
        };
        let compiled = raw::compile(self.lua, script.source(), c"@user_script");
        let function = compiled
            .map_err(|error| failed(error.to_string()))?
            .map_err(failed)?;
        let mut all = self.compiled.borrow_mut();
        if all.len() >= SCRIPTS_COMPILED_MAX {
            all.clear();
        }
        all.insert(script.sha.clone(), function.clone());
        Ok(function)
    }
}
