//! A machine: Lua on a fiber, which runs one script after another.
#![allow(unsafe_code)]

use std::future::poll_fn;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

use super::engine::run_fiber;
use super::fiber::{Commands, Event, Order};
use super::functions::{Function, Program};
use super::running::Run;
use super::script::Script;
use super::state::{End, Origin};
use quoin_base::limits::SCRIPT_STACK_BYTES;
use quoin_base::redis_version::RedisVersion;

/// How often a script that is given up may wait before its machine is given up.
const ABORTS_MAX: usize = 100;

/// A machine. It runs one script at a time and stays on its thread.
pub struct Machine {
    fiber: ManuallyDrop<Coroutine<Order, Event, ()>>,
    version: RedisVersion,
    is_running: bool,
    is_spent: bool,
}

impl Machine {
    /// A machine that has run nothing. Its scripts see this version of Redis.
    ///
    /// # Errors
    /// Why it was not created: out of memory.
    pub fn new(version: RedisVersion) -> std::result::Result<Self, String> {
        let stack = DefaultStack::new(SCRIPT_STACK_BYTES).map_err(|error| error.to_string())?;
        let mut fiber = Coroutine::with_stack(stack, move |yielder, _: Order| {
            run_fiber(yielder, version);
        });
        match fiber.resume(Order::Abort) {
            CoroutineResult::Yield(Event::Idle) => Ok(Self {
                fiber: ManuallyDrop::new(fiber),
                version,
                is_running: false,
                is_spent: false,
            }),
            CoroutineResult::Yield(Event::Broken(reason)) => Err(reason),
            _ => Err("a machine for scripts does not start".to_owned()),
        }
    }

    /// The version of Redis that its scripts see.
    pub fn version(&self) -> RedisVersion {
        self.version
    }

    /// Runs a script or a function, and its commands by `commands`.
    pub async fn run(
        &mut self,
        program: &Program,
        keys: Vec<Bytes>,
        arguments: Vec<Bytes>,
        run: &Arc<Run>,
        commands: &mut (dyn Commands + '_),
    ) -> End {
        let commands: NonNull<dyn Commands + '_> = commands.into();
        // SAFETY: only the lifetime changes. The fiber uses it until the script has ended, and
        // `Running`, which is dropped before the borrow ends, ensures that it has.
        let commands: NonNull<dyn Commands> = unsafe { std::mem::transmute(commands) };
        let running = Running(self);
        let mut begin = Some((program.clone(), keys, arguments, Arc::clone(run)));
        poll_fn(|context| {
            let waker = context.waker().clone();
            let order = match begin.take() {
                Some((program, keys, arguments, run)) => Order::Run {
                    program,
                    keys,
                    arguments,
                    run,
                    commands,
                    waker,
                },
                None => Order::Poll(waker),
            };
            run.go_on();
            let polled = running.0.resume(order);
            if polled.is_pending() {
                run.wait();
            }
            polled
        })
        .await
    }

    /// Compiles a script.
    ///
    /// # Errors
    /// Redis's error line if it is not Lua.
    pub fn compile(&mut self, script: &Arc<Script>) -> std::result::Result<(), String> {
        match self.fiber.resume(Order::Compile(Arc::clone(script))) {
            CoroutineResult::Yield(Event::Compiled { result, is_spent }) => {
                self.is_spent = is_spent;
                result
            }
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
    /// Redis's error line if the source is not Lua, or fails.
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

    fn resume(&mut self, order: Order) -> Poll<End> {
        self.is_running = true;
        let event = match self.fiber.done() {
            true => None,
            false => match self.fiber.resume(order) {
                CoroutineResult::Yield(event) => Some(event),
                CoroutineResult::Return(()) => None,
            },
        };
        let (end, is_spent) = match event {
            Some(Event::Waits) => return Poll::Pending,
            Some(Event::Ended { end, is_spent }) => (end, is_spent),
            _ => {
                let line = "ERR the script's machine has failed";
                (End::Failed(line.to_owned(), Origin::Script), true)
            }
        };
        self.is_running = false;
        self.is_spent = is_spent;
        Poll::Ready(end)
    }
}

/// A run that ends when this is dropped, even if its script has not ended.
struct Running<'m>(&'m mut Machine);

impl Drop for Running<'_> {
    /// A fiber is never unwound: its script is ended by errors.
    fn drop(&mut self) {
        for _ in 0..ABORTS_MAX {
            if !self.0.is_running {
                break;
            }
            let _ = self.0.resume(Order::Abort);
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // The pending future on the fiber may refer to dropped values, so the fiber is left as it
        // is.
        if self.is_running {
            return;
        }
        if !self.fiber.done() {
            self.fiber.resume(Order::Stop);
        }
        // SAFETY: this is the only place that drops it.
        unsafe { ManuallyDrop::drop(&mut self.fiber) };
    }
}
