//! Lua on the fiber of a machine, and the scripts and functions that it has compiled.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use corosensei::Yielder;
use mlua::{Function, Lua, LuaOptions, Result, StdLib, Table, Value};

use super::calls::{Calling, Done, Entry};
use super::fiber::{Event, Fiber, Order};
use super::functions::{Library, Program, library_source};
use super::running::Run;
use super::sandbox::{self, Globals};
use super::script::Script;
use super::state::{End, KILLED_LINE, Meter, Origin, Registered, State, Stop, place_in_script};
use super::{api, raw, values};
use quoin_base::limits::{
    LIBRARIES_LOADED_MAX, SCRIPT_MEMORY_BYTES_MAX, SCRIPT_MEMORY_KEPT_BYTES_MAX,
    SCRIPTS_COMPILED_MAX,
};
use quoin_base::redis_version::RedisVersion;

/// Lua and what it needs to run scripts.
struct Engine<'l> {
    lua: &'l Lua,
    calling: &'l Calling<'l>,
    state: Rc<State>,
    globals: Globals,
    runners: Runners,
    compiled: RefCell<HashMap<String, Rc<Function>>>,
    /// The functions of libraries by their names, by the libraries' ids.
    loaded: RefCell<HashMap<u64, Table>>,
}

/// Serves orders until it is stopped.
pub(super) fn run_fiber(yielder: &Yielder<Order, Event>, version: RedisVersion) {
    let served = open(version).and_then(|(lua, state)| {
        let calling = Calling::new(Fiber::new(yielder), Rc::clone(&state));
        lua.scope(|scope| {
            let redis = api::library(&lua, scope, &calling)?;
            let runners = Runners::new(&lua)?;
            let globals = sandbox::close(&lua, &state, redis)?;
            let scripts = &globals.scripts;
            scripts.raw_set("__redis__err__handler", &runners.handler)?;
            let engine = Engine {
                lua: &lua,
                calling: &calling,
                state: Rc::clone(&state),
                globals,
                runners,
                compiled: RefCell::default(),
                loaded: RefCell::default(),
            };
            engine.serve();
            Ok(())
        })
    });
    if let Err(error) = served {
        yielder.suspend(Event::Broken(error.to_string()));
    }
}

fn open(version: RedisVersion) -> Result<(Lua, Rc<State>)> {
    let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
    let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
    lua.set_memory_limit(SCRIPT_MEMORY_BYTES_MAX)?;
    let state = Rc::new(State::new(version));
    // Functions of libraries find it there.
    lua.set_app_data(Rc::clone(&state));
    Ok((lua, state))
}

impl Engine<'_> {
    fn serve(&self) {
        let fiber = &self.calling.fiber;
        let mut event = Event::Idle;
        loop {
            event = match fiber.next(event) {
                Order::Run {
                    program,
                    keys,
                    arguments,
                    run,
                    commands,
                    waker,
                } => {
                    fiber.set_waker(waker);
                    // SAFETY: `Machine::run` keeps them until this run has ended.
                    unsafe { self.calling.set_commands(Some(commands)) };
                    let end = self.run(&program, &keys, &arguments, run);
                    // SAFETY: it sets none.
                    unsafe { self.calling.set_commands(None) };
                    let is_spent = self.is_spent();
                    Event::Ended { end, is_spent }
                }
                Order::Compile(script) => Event::Compiled {
                    result: self.compiled(&script).map(drop),
                    is_spent: self.is_spent(),
                },
                Order::Load(source, run) => {
                    let begun = self.state.begin(self.lua, run);
                    let begun = begun.map_err(|error| format!("ERR {error}"));
                    let result = begun.and_then(|()| self.load(&source));
                    *self.state.run.borrow_mut() = None;
                    Event::Loaded {
                        result: result.map(|registered| registered.described),
                        is_spent: self.is_spent(),
                    }
                }
                Order::Poll(_) | Order::Abort => Event::Idle,
                Order::Stop => return,
            };
        }
    }

    fn is_spent(&self) -> bool {
        self.state.is_stopping() || self.uses_too_much() && !self.gives_back()
    }

    fn uses_too_much(&self) -> bool {
        self.lua.used_memory() > SCRIPT_MEMORY_KEPT_BYTES_MAX
    }

    /// Whether it was mostly garbage that took the memory.
    fn gives_back(&self) -> bool {
        self.lua.gc_collect().is_ok() && !self.uses_too_much()
    }

    fn run(&self, program: &Program, keys: &[Bytes], arguments: &[Bytes], run: Arc<Run>) -> End {
        self.state.is_resp3.set(false);
        self.state.json.reset();
        let begun = self.state.begin(self.lua, run);
        let end = begun.and_then(|()| self.run_prepared(program, keys, arguments));
        *self.state.run.borrow_mut() = None;
        let name = program.name();
        let end = end.unwrap_or_else(|error| {
            let reason = match error {
                mlua::Error::MemoryError(_) => "not enough memory".to_owned(),
                error => error.to_string(),
            };
            let line = format!("ERR Error running script {name}, {reason}");
            End::Failed(line, Origin::Script)
        });
        match self.state.stopping.get() {
            None => end,
            Some(Stop::Late) => End::Late,
            Some(Stop::Aborted) => End::Aborted,
            Some(Stop::Killed) => {
                let place = self.state.stopped_at.borrow();
                let place = place.as_ref().map_or_else(String::new, |(source, line)| {
                    format!(" script: {name}, on {source}:{line}.")
                });
                End::Killed(format!("{KILLED_LINE}{place}"))
            }
        }
    }

    fn run_prepared(&self, program: &Program, keys: &[Bytes], values: &[Bytes]) -> Result<End> {
        let function = match program {
            Program::Script(script) => self.compiled(script),
            Program::Function(library, _) => self.library_function(library, program.name()),
        };
        let function = match function {
            Ok(function) => function,
            Err(line) => return Ok(End::Failed(line, Origin::Script)),
        };
        if let Some(run) = &*self.state.run.borrow() {
            run.begin();
        }
        let entry = Entry {
            function: &function,
            handler: &self.runners.handler,
            globals: &self.globals.scripts,
            is_function: matches!(program, Program::Function(..)),
            keys,
            arguments: values,
            is_resp3: &self.state.is_resp3,
        };
        Ok(match entry.run(self.lua)? {
            // It has no error in it.
            Done::Replied(reply) => End::Replied(reply, Origin::Script),
            Done::Returned(value) => {
                let is_resp3 = self.state.is_resp3.get();
                let meter = Meter::new(self.lua, &self.state);
                let reply = || values::to_reply(&value, is_resp3, meter);
                let reply = self.state.make(self.lua, reply)?;
                End::Replied(reply, values::origin(&value)?)
            }
            Done::Raised(error) => {
                let line = self.error_line(program.name(), &error)?;
                End::Failed(line, values::origin(&error)?)
            }
        })
    }

    /// The error line of a script that has raised this.
    fn error_line(&self, name: &str, error: &Value) -> Result<String> {
        let Value::Table(table) = error else {
            let text = match self.lua.coerce_string(error.clone())? {
                Some(text) => text.to_string_lossy(),
                None => "execution failure".to_owned(),
            };
            return Ok(format!("ERR Error running script {name}, {text}"));
        };
        let text = |field: &str| -> Result<Option<String>> {
            let value = table.raw_get::<Value>(field)?;
            let text = self.lua.coerce_string(value)?;
            Ok(text.map(|text| text.to_string_lossy()))
        };
        let mut line = text("err")?.unwrap_or_else(|| "ERR unknown error".to_owned());
        if let (Some(source), Some(number)) = (text("source")?, text("line")?) {
            line.push_str(&format!(" script: {name}, on {source}:{number}."));
        }
        Ok(line.replace(['\r', '\n'], " "))
    }

    /// The function of the script. Compiles it if this machine has not seen it.
    fn compiled(&self, script: &Script) -> std::result::Result<Rc<Function>, String> {
        if let Some(function) = self.compiled.borrow().get(&script.sha) {
            return Ok(Rc::clone(function));
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
        let function = Rc::new(function);
        all.insert(script.sha.clone(), Rc::clone(&function));
        Ok(function)
    }

    /// A function of a library. Loads the library if this machine has not done so.
    fn library_function(
        &self,
        library: &Library,
        name: &str,
    ) -> std::result::Result<Rc<Function>, String> {
        if !self.loaded.borrow().contains_key(&library.id) {
            let registered = self.load(&library_source(&library.code))?;
            let mut loaded = self.loaded.borrow_mut();
            if loaded.len() >= LIBRARIES_LOADED_MAX {
                loaded.clear();
            }
            loaded.insert(library.id, registered.by_name);
        }
        let loaded = self.loaded.borrow();
        let functions = loaded.get(&library.id);
        functions
            .and_then(|by_name| by_name.raw_get::<Function>(name).ok())
            .map(Rc::new)
            .ok_or_else(|| "ERR Function not found".to_owned())
    }

    /// Runs the code of a library, and returns what it registered.
    fn load(&self, source: &[u8]) -> std::result::Result<Registered, String> {
        let loaded = self.load_shown(source);
        let registered = self.state.registered.borrow_mut().take();
        let hidden = self.globals.functions.show(false);
        let failed = |reason: String| {
            let line = format!("ERR Error registering functions: {reason}");
            line.replace(['\r', '\n'], " ")
        };
        if self.state.is_stopping() {
            return Err(failed("ERR FUNCTION LOAD timeout".to_owned()));
        }
        match (loaded.and_then(|done| hidden.map(|()| done)), registered) {
            (Err(error), _) => Err(failed(format!("ERR {error}"))),
            (Ok(Err(line)), _) => Err(line.replace(['\r', '\n'], " ")),
            (Ok(Ok(Some(reason))), _) => Err(failed(reason)),
            (Ok(Ok(None)), Some(registered)) => Ok(registered),
            (Ok(Ok(None)), None) => Err(failed("ERR nothing is loaded".to_owned())),
        }
    }

    /// Returns the error line if the code does not compile, or what it raised, if anything.
    fn load_shown(&self, source: &[u8]) -> Result<std::result::Result<Option<String>, String>> {
        *self.state.registered.borrow_mut() = Some(Registered {
            described: Vec::new(),
            by_name: self.lua.create_table()?,
        });
        self.globals.functions.show(true)?;
        let function = match raw::compile(self.lua, source, c"@user_function")? {
            Ok(function) => function,
            Err(reason) => return Ok(Err(format!("ERR Error compiling function: {reason}"))),
        };
        function.set_environment(self.globals.functions.shown.clone())?;
        let (is_done, error): (bool, Value) = self.runners.library.call(function)?;
        if is_done {
            return Ok(Ok(None));
        }
        let reason = match &error {
            Value::Table(table) => {
                let text = table.raw_get::<Value>("err")?;
                self.lua
                    .coerce_string(text)?
                    .map(|text| text.to_string_lossy())
            }
            error => {
                let text = self.lua.coerce_string(error.clone())?;
                text.map(|text| format!("ERR {}", text.to_string_lossy()))
            }
        };
        Ok(Ok(Some(
            reason.unwrap_or_else(|| "ERR unknown error".to_owned()),
        )))
    }
}

/// Runs compiled scripts and functions.
pub(super) struct Runners {
    /// Calls the function of a loaded library: whether it succeeded, and its error. Errors are not converted.
    pub(super) library: Function,
    /// Turns errors of scripts and functions into tables that contain the error's position.
    pub(super) handler: Function,
}

impl Runners {
    pub(super) fn new(lua: &Lua) -> Result<Self> {
        let code = "local xpcall = ... \
             return function(f) return xpcall(f, function(e) return e end) end";
        let protected: Function = lua.globals().raw_get("xpcall")?;
        let library = lua.load(code).set_name("=quoin").call(protected)?;
        let handler = error_handler(lua)?;
        Ok(Self { library, handler })
    }
}

/// Turns errors into tables that contain the error's position.
fn error_handler(lua: &Lua) -> Result<Function> {
    let to_text: Function = lua.globals().raw_get("tostring")?;
    lua.create_function(move |lua, error: Value| {
        if matches!(error, Value::Error(_)) {
            return Ok(error);
        }
        let found = place_in_script(lua);
        let table = match error {
            // A table that scripts share must stay unchanged.
            Value::Table(table) if !raw::is_read_only(&table)? => table,
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
        if let Some((source, line)) = found {
            table.raw_set("source", source)?;
            table.raw_set("line", line)?;
        }
        Ok(Value::Table(table))
    })
}
