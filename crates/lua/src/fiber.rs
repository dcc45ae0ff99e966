//! The fiber of a machine: the messages between it and its driver, and how it waits.

use std::cell::RefCell;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use corosensei::Yielder;

use super::functions::{Function, Program};
use super::running::Run;
use super::script::Script;
use super::state::End;
use quoin_resp::reply::Reply;

/// Runs the commands that a script calls. It is called on the script's fiber.
pub trait Commands {
    /// Runs a command, and waits with [`Fiber::wait`] if necessary. `None` ends the script.
    fn call(&mut self, arguments: Vec<Bytes>, fiber: &Fiber<'_>) -> Option<Reply>;

    /// Whether the script's user may call a command. An error is raised. Anything except true means
    /// no.
    fn check(&mut self, arguments: Vec<Bytes>) -> Reply;
}

/// A message to a fiber.
pub(super) enum Order {
    Run {
        program: Program,
        keys: Vec<Bytes>,
        arguments: Vec<Bytes>,
        run: Arc<Run>,
        /// Runs its commands. It outlives the run.
        commands: NonNull<dyn Commands>,
        waker: Waker,
    },
    Compile(Arc<Script>),
    /// Loads the source of a library, to see what it registers.
    Load(Bytes, Arc<Run>),
    /// Polls the pending future.
    Poll(Waker),
    /// Gives up the pending future and ends the script.
    Abort,
    Stop,
}

/// What a suspended fiber reports.
pub(super) enum Event {
    /// It could not be set up.
    Broken(String),
    /// It waits for an order.
    Idle,
    Compiled {
        result: std::result::Result<(), String>,
        /// The machine is of no more use.
        is_spent: bool,
    },
    Loaded {
        result: std::result::Result<Vec<Function>, String>,
        /// The machine is of no more use.
        is_spent: bool,
    },
    /// A command waits. Its waker says when to resume.
    Waits,
    Ended {
        end: End,
        /// The machine is of no more use.
        is_spent: bool,
    },
}

/// A fiber, as seen by the code that runs on it.
pub struct Fiber<'y> {
    yielder: &'y Yielder<Order, Event>,
    /// Of the task that drives the fiber now.
    waker: RefCell<Waker>,
}

impl<'y> Fiber<'y> {
    pub(super) fn new(yielder: &'y Yielder<Order, Event>) -> Self {
        Self {
            yielder,
            waker: RefCell::new(Waker::noop().clone()),
        }
    }

    /// Suspends the fiber until there is an order.
    pub(super) fn next(&self, event: Event) -> Order {
        self.yielder.suspend(event)
    }

    pub(super) fn set_waker(&self, waker: Waker) {
        *self.waker.borrow_mut() = waker;
    }

    /// The result of a future. The fiber is suspended while the future is pending. `None` if the
    /// script's run was given up meanwhile.
    pub fn wait<T>(&self, mut future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        loop {
            let polled = {
                let waker = self.waker.borrow();
                future.as_mut().poll(&mut Context::from_waker(&waker))
            };
            if let Poll::Ready(value) = polled {
                return Some(value);
            }
            match self.next(Event::Waits) {
                Order::Poll(waker) => self.set_waker(waker),
                _ => return None,
            }
        }
    }
}
