//! One scenario on Quoin, which is killed in the middle, and on Redis, which is not.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::process::Group;
use crate::redis_server::Redis;
use crate::server::Server;

/// Longer than any scenario takes on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(300);
/// How long clients find no server.
const DOWN: Duration = Duration::from_millis(500);
/// How much of the end of each log a failure shows.
const LOG_BYTES: usize = 3_000;

/// Runs a script on both servers at the same time: an interpreter, the script, and its arguments.
///
/// # Panics
/// If the script fails on one of them, or their outcomes differ.
pub fn compare(command: &[OsString]) {
    let (on_quoin, on_redis) = std::thread::scope(|scope| {
        let on_quoin = scope.spawn(|| on_quoin(command));
        let on_redis = scope.spawn(|| on_redis(command));
        (on_quoin.join().unwrap(), on_redis.join().unwrap())
    });
    let on_quoin = on_quoin.unwrap_or_else(|said| panic!("on Quoin {said}"));
    let Some(on_redis) = on_redis else {
        return;
    };
    let on_redis = on_redis.unwrap_or_else(|said| panic!("on Redis {said}"));
    assert_eq!(on_quoin, on_redis, "Quoin's outcomes, and Redis's");
}

fn on_quoin(command: &[OsString]) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    // The port must be the same after the kill.
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|socket| socket.local_addr())
        .unwrap()
        .port();
    let start = || {
        let flags = ["--port", &port.to_string()];
        Server::start_in(folder.path(), &flags).unwrap_or_else(|log| panic!("no server: {log}"))
    };
    let mut server = Some(start());
    let mut kills = 0;
    let outcomes = run(command, port, folder.path(), || {
        kills += 1;
        let mut killed = server.take().unwrap();
        killed.signal("KILL");
        killed.wait();
        drop(killed);
        std::thread::sleep(DOWN);
        server = Some(start());
    })?;
    assert!(kills > 0, "the server was not killed");
    Ok(outcomes)
}

/// `None` without a Redis.
fn on_redis(command: &[OsString]) -> Option<Result<String, String>> {
    let folder = tempfile::tempdir().unwrap();
    match Redis::start_with_port(folder.path(), &[]) {
        Ok(redis) => {
            let port = redis.address().unwrap().port();
            Some(run(command, port, folder.path(), || {}))
        }
        Err(error) if std::env::var_os("QUOIN_TEST_REQUIRE_REDIS").is_none() => {
            // Written past the capture of a passing test's output.
            let _ = writeln!(std::io::stderr(), "nothing is compared with Redis: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Runs a script completely. Its outcomes are the last line that it prints.
fn run(
    command: &[OsString],
    port: u16,
    folder: &Path,
    mut kill: impl FnMut(),
) -> Result<String, String> {
    let work = folder.join("work");
    std::fs::create_dir(&work).unwrap();
    let errors = File::create(work.join("script.log")).unwrap();
    let mut script = Group::spawn(
        Command::new(&command[0])
            .arg(&command[1])
            .arg(port.to_string())
            .arg(&work)
            .args(&command[2..])
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(&work)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors),
    )
    .unwrap();
    let mut orders = script.child.stdin.take().unwrap();
    let lines = BufReader::new(script.child.stdout.take().unwrap()).lines();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    let deadline = Instant::now() + TIMEOUT;
    let mut last = String::new();
    loop {
        let rest = deadline.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(rest) {
            Ok(line) if line == "kill" => {
                kill();
                let _ = orders.write_all(b"back\n");
            }
            Ok(line) => last = line,
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                return Err(format!("the script does not end:\n{}", logs(&work)));
            }
        }
    }
    match script.wait(Duration::from_secs(10)) {
        Some(status) if status.success() => Ok(last),
        _ => Err(format!("the script fails:\n{}", logs(&work))),
    }
}

/// The ends of the logs of the script and its workers.
fn logs(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "log") {
            let log = std::fs::read(&path).unwrap();
            let end = &log[log.len().saturating_sub(LOG_BYTES)..];
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let _ = writeln!(text, "== {name}\n{}", String::from_utf8_lossy(end));
        }
    }
    text
}
