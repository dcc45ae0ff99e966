//! A machine: Lua on a fiber, which runs one script after the other.

use std::sync::Arc;

use bytes::Bytes;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

use super::engine::run_fiber;
use super::functions::{Function, Program};
use super::running::Run;
use super::script::Script;
use super::state::{Answer, Ask, End, Event, Order, Origin};
use crate::limits::SCRIPT_STACK_BYTES;

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

    /// Runs a script or a function until it asks or ends.
    pub fn begin(
        &mut self,
        program: &Program,
        keys: Vec<Bytes>,
        arguments: Vec<Bytes>,
        run: &Arc<Run>,
    ) -> Step {
        self.is_running = true;
        self.resume(Order::Run {
            program: program.clone(),
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

    /// Loads the source of a library, to see which functions it registers. `run` ends it if it
    /// takes too long.
    ///
    /// # Errors
    /// Redis's error line where it is no Lua, or fails.
    pub fn load(
        &mut self,
        source: Bytes,
        run: &Arc<Run>,
    ) -> std::result::Result<Vec<Function>, String> {
        match self.fiber.resume(Order::Load(source, Arc::clone(run))) {
            CoroutineResult::Yield(Event::Loaded { result, is_spent }) => {
                self.is_spent = is_spent;
                result
            }
            _ => {
                self.is_spent = true;
                Err("ERR Error registering functions".to_owned())
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
                    Origin::Script,
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
