//! Ends the process after a panic in vital work.
//!
//! A thread that panics ends alone. If it were a lane of the executor, the server would still
//! answer PING but do nothing else. So such work is marked as vital, and a panic in it ends the
//! process at once, before anything is unwound. A client that waits for a reply then sees its
//! connection break. It gets no error that claims that nothing was done.

use std::cell::Cell;
use std::pin::pin;
use std::sync::Once;

/// The exit code: that of a Rust program whose main thread panics.
pub const PANIC_EXIT_CODE: i32 = 101;

thread_local! {
    /// The vital work of this thread.
    static VITAL: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Marks the thread's current work as vital until it is dropped.
#[derive(Debug)]
pub struct Vital {
    before: Option<&'static str>,
}

impl Vital {
    /// Marks the thread's work as vital from now on, under the name `what`.
    pub fn enter(what: &'static str) -> Self {
        watch_panics();
        Self {
            before: VITAL.replace(Some(what)),
        }
    }
}

impl Drop for Vital {
    fn drop(&mut self) {
        VITAL.set(self.before);
    }
}

/// Runs a task's work, which is vital.
pub async fn vital<W: Future>(what: &'static str, work: W) -> W::Output {
    let mut work = pin!(work);
    std::future::poll_fn(|context| {
        // Between two polls the thread is at other tasks.
        let _vital = Vital::enter(what);
        work.as_mut().poll(context)
    })
    .await
}

/// Adds a hook that runs after the one that prints the panic.
fn watch_panics() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            print(panic);
            // A thread that is ending no longer has the mark, and does no vital work.
            let what = VITAL.try_with(Cell::get).ok().flatten();
            if let Some(what) = what {
                tracing::error!(
                    "{what} panicked, and the server cannot run without it: the process ends. \
                     Acknowledged writes are in the store. This is a bug in Quoin: please report \
                     it with the lines above"
                );
                exit();
            }
        }));
    });
}

#[allow(unsafe_code)]
fn exit() -> ! {
    // SAFETY: the function has no preconditions. It skips exit handlers, which might wait for the
    // thread that has just panicked.
    unsafe { libc::_exit(PANIC_EXIT_CODE) }
}

/// Panics that end the process, for tests.
#[cfg(feature = "testing")]
// Only tests call it, and a panic fails the test. clippy.toml exempts `#[cfg(test)]`, not features.
#[allow(clippy::unwrap_used)]
pub mod testing {
    use std::process::{Command, Output, Stdio};

    /// Says to a test that it is the child.
    const CHILD: &str = "QUOIN_TEST_PANICS";

    /// Runs `panics` in a child process, which runs this test again. Returns how the child ended.
    /// `test` is the test's full name.
    pub fn ends_of(test: &str, panics: impl FnOnce()) -> Option<Output> {
        if std::env::var_os(CHILD).is_some() {
            panics();
            return None;
        }
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(CHILD, "1")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        Some(output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_a_vital_task_ends_the_process() {
        let name = "fatal_panic::tests::a_panic_in_a_vital_task_ends_the_process";
        let ended = testing::ends_of(name, || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap();
            let task = vital("the task", async { panic!("of a test") });
            // tokio keeps the panic of a task from its thread.
            let _ = runtime.block_on(async { tokio::spawn(task).await });
        });
        if let Some(ended) = ended {
            assert_eq!(ended.status.code(), Some(PANIC_EXIT_CODE));
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert!(said.contains("of a test"), "{said}");
        }
    }

    #[test]
    fn the_mark_ends_with_the_work() {
        let outer = Vital::enter("the outer");
        {
            let _inner = Vital::enter("the inner");
            assert_eq!(VITAL.get(), Some("the inner"));
        }
        assert_eq!(VITAL.get(), Some("the outer"));
        drop(outer);
        assert_eq!(VITAL.get(), None);
        // A task's mark does not stay between its polls.
        let mut task = Box::pin(vital("the task", std::future::pending::<()>()));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(task.as_mut().poll(&mut context).is_pending());
        assert_eq!(VITAL.get(), None);
    }
}
