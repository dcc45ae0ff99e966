//! How long a thread has been busy.

use std::cell::Cell;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Divisor for time in which the thread did not have the processor. It may have waited for the
/// disk, which counts, or for other threads, which does not.
const WAITING_DIVISOR: u32 = 4;

/// How long a thread's processor time is reused for further stopwatches. Much shorter than what
/// they measure.
const SAMPLE_AGE_MAX: Duration = Duration::from_micros(100);

thread_local! {
    /// The processor time that the thread last asked for, and when.
    static SAMPLE: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
}

/// Measures the thread on which it is created, from then on.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch {
    began: Instant,
    processor: Duration,
}

impl Stopwatch {
    /// Starts now. Reading the processor time is a system call, so the value used may be up to
    /// [`SAMPLE_AGE_MAX`] old, and work that the thread did since then counts too.
    pub fn start() -> Self {
        let began = Instant::now();
        let processor = SAMPLE.with(|sample| match sample.get() {
            Some((at, processor)) if began.duration_since(at) < SAMPLE_AGE_MAX => processor,
            _ => {
                let processor = processor_time();
                sample.set(Some((began, processor)));
                processor
            }
        });
        Self { began, processor }
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// How long the thread was busy in `elapsed`, which is part or all of the time since the start.
    /// It costs more than reading a clock, so call it only if `elapsed` is long.
    pub fn busy(&self, elapsed: Duration) -> Duration {
        self.used().min(elapsed).max(elapsed / WAITING_DIVISOR)
    }

    /// How long the thread waited in `elapsed`, for the disk, a lock or other threads. A short time
    /// is not worth a system call and counts as waiting.
    pub fn waited(&self, elapsed: Duration) -> Duration {
        match elapsed > SAMPLE_AGE_MAX {
            true => elapsed.saturating_sub(self.used()),
            false => elapsed,
        }
    }

    /// The processor time that the thread has used since the start.
    fn used(&self) -> Duration {
        processor_time().saturating_sub(self.processor)
    }
}

/// The processor time that this thread has used.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}

/// How long each of several pieces of work may occupy a thread. They share a stopwatch.
#[derive(Debug, Clone, Copy)]
pub struct BusyLimit {
    /// Started no later than the work. If the work then waits, what the thread did in between
    /// counts as work.
    pub stopwatch: Stopwatch,
    /// The longest time.
    pub max: Duration,
}

impl BusyLimit {
    /// Whether work that began at `since` has taken longer.
    pub fn is_over(&self, since: Instant) -> bool {
        let elapsed = since.elapsed();
        elapsed > self.max && self.stopwatch.busy(elapsed) > self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_millis(50);

    fn work(time: Duration) {
        let began = processor_time();
        while processor_time() - began < time {}
    }

    #[test]
    fn work_counts_in_full() {
        let stopwatch = Stopwatch::start();
        work(LONG);
        assert!(stopwatch.busy(stopwatch.elapsed()) >= LONG);
    }

    #[test]
    fn waiting_counts_for_a_part() {
        let stopwatch = Stopwatch::start();
        std::thread::sleep(LONG);
        let elapsed = stopwatch.elapsed();
        let busy = stopwatch.busy(elapsed);
        assert!(busy >= elapsed / WAITING_DIVISOR && busy < elapsed);
    }

    #[test]
    fn a_limit_is_over_after_as_much_work() {
        let since = Instant::now();
        let limit = |max| BusyLimit {
            stopwatch: Stopwatch::start(),
            max,
        };
        let (short, long) = (limit(LONG), limit(LONG * 100));
        work(LONG);
        assert!(short.is_over(since) && !long.is_over(since));
    }
}
