//! A worker for a task queue, with the crate `redis`: `cargo run --example worker redis://127.0.0.1:6379 jobs`.
//!
//! It extends the lease of the task that it works on, tries failed tasks again later and says why they failed, survives
//! restarts of the server, and finishes its task when it gets SIGTERM.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::{Client, Cmd, Connection, ConnectionLike, FromRedisValue, RedisResult, Value, cmd};

const LEASE_MS: u64 = 30_000;
const BLOCK_MS: u64 = 1_000;
const DELAY_MS_MAX: u64 = 3_600_000;
/// Pause before the next attempt to connect.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// A task as TASK.TAKE with LEASE answers it: id, priority, tries, needs, payload, token.
type Taken = (String, f64, u32, Vec<(String, f64)>, String, String);

/// The work itself. `is_lost` says that another worker has the task by now, so that this one should give up.
fn handle(payload: &str, is_lost: &AtomicBool) -> Result<(), String> {
    let (word, rest) = payload.split_once(' ').unwrap_or((payload, ""));
    match word {
        "fail" => Err(rest.to_owned()),
        "sleep" => {
            let ms = rest.parse().map_err(|error| format!("{error}"))?;
            std::thread::sleep(Duration::from_millis(ms));
            match is_lost.load(Ordering::Relaxed) {
                true => Err("the lease is lost".to_owned()),
                false => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// A connection that is made again when it breaks.
struct Link {
    client: Client,
    connection: Option<Connection>,
}

impl Link {
    fn new(client: Client) -> Self {
        Self {
            client,
            connection: None,
        }
    }

    fn send<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(self.client.get_connection()?),
        };
        let reply = command.query(connection);
        if !connection.is_open() {
            self.connection = None;
        }
        reply
    }

    /// Sends the outcome of a task until the server has it. Sent twice, the second reply is 0: there is no such task
    /// any more.
    fn finish(&mut self, command: &Cmd) {
        while let Err(error) = self.send::<Value>(command) {
            if error.code().is_some() {
                // The server refuses it, so the lease will end instead.
                eprintln!("{error}");
                return;
            }
            std::thread::sleep(RETRY_PAUSE);
        }
    }
}

/// What a worker works with.
struct Worker {
    link: Link,
    /// For extensions, which another thread sends.
    keeping: Arc<Mutex<Link>>,
    queue: String,
    lease_ms: u64,
}

impl Worker {
    /// Extends the lease until the task has ended.
    fn keep(link: &Mutex<Link>, extend: &Cmd, every: Duration, ended: &Receiver<()>) -> bool {
        while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
            let reply = match link.lock() {
                Ok(mut link) => link.send::<i64>(extend),
                Err(_) => return false,
            };
            // After an error the lease lasts for two more attempts.
            if reply.is_ok_and(|reply| reply != 1) {
                return true;
            }
        }
        false
    }

    fn work(&mut self, (id, _priority, tries, _needs, payload, token): Taken) {
        let mut extend = cmd("TASK.EXTEND");
        extend.arg((&self.queue, &id, self.lease_ms, "TOKEN", &token));
        let (end, ended) = channel();
        let is_lost = Arc::new(AtomicBool::new(false));
        let keeper = std::thread::spawn({
            let (link, is_lost) = (Arc::clone(&self.keeping), Arc::clone(&is_lost));
            let every = Duration::from_millis(self.lease_ms / 3);
            move || is_lost.store(Self::keep(&link, &extend, every, &ended), Ordering::Relaxed)
        });
        let outcome = handle(&payload, &is_lost);
        drop(end);
        // It fails only if the thread has panicked, and then the lease ends by itself.
        let _ = keeper.join();
        match outcome {
            Ok(()) => {
                println!("done: {id}");
                let mut ack = cmd("TASK.ACK");
                self.link
                    .finish(ack.arg((&self.queue, &id, "TOKEN", &token)));
            }
            Err(reason) => {
                println!("failed: {id}: {reason}");
                let delay_ms = 1_000u64.saturating_mul(1 << tries.saturating_sub(1).min(20));
                let delay_ms = delay_ms.min(DELAY_MS_MAX);
                let mut nack = cmd("TASK.NACK");
                nack.arg((&self.queue, &id, "DELAY", delay_ms, "REASON", &reason));
                self.link.finish(nack.arg(("TOKEN", &token)));
            }
        }
    }

    fn run(&mut self, is_stopping: &AtomicBool) {
        let name = format!("worker:{}", std::process::id());
        let mut take = cmd("TASK.TAKE");
        take.arg((&self.queue, "LEASE", self.lease_ms));
        take.arg(("WORKER", name, "BLOCK", BLOCK_MS));
        while !is_stopping.load(Ordering::Relaxed) {
            match self.link.send::<Option<Vec<Taken>>>(&take) {
                Ok(tasks) => tasks.into_iter().flatten().for_each(|task| self.work(task)),
                Err(_) => std::thread::sleep(RETRY_PAUSE),
            }
        }
    }
}

/// A flag that is set when the process is told to stop.
fn stopping() -> std::io::Result<Arc<AtomicBool>> {
    let is_stopping = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let guard = runtime.enter();
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    drop(guard);
    std::thread::spawn({
        let is_stopping = Arc::clone(&is_stopping);
        move || {
            runtime.block_on(terminated.recv());
            is_stopping.store(true, Ordering::Relaxed);
        }
    });
    Ok(is_stopping)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(queue)) = (arguments.next(), arguments.next()) else {
        return Err("usage: worker URL QUEUE [LEASE_MS]".into());
    };
    let lease_ms = arguments.next().map_or(Ok(LEASE_MS), |text| text.parse())?;
    let client = Client::open(url)?;
    let mut worker = Worker {
        link: Link::new(client.clone()),
        keeping: Arc::new(Mutex::new(Link::new(client))),
        queue,
        lease_ms,
    };
    worker.run(&*stopping()?);
    Ok(())
}
