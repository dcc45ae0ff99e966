//! A standby: `quoin restore --follow` next to a server, which is killed.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::folders::{backup, bad, field, fill, good, last_commit, quoin, rows, start_on, stop};
use crate::server::{PATIENCE, Server, Socket, wait_until};

const ARCHIVE: &str = "archive";

fn start(folder: &Path) -> Server {
    Server::start_in(folder, &["--journal-archive-dir", ARCHIVE]).unwrap()
}

/// A server with rows of all kinds, and a client.
fn start_filled(folder: &Path) -> (Server, Socket) {
    let server = start(folder);
    let mut socket = server.connect();
    fill(&mut socket, "before");
    (server, socket)
}

/// A server with a list of one element, and a client.
fn start_with_list(folder: &Path) -> (Server, Socket) {
    let server = start(folder);
    let mut socket = server.connect();
    socket.run("RPUSH list a");
    (server, socket)
}

/// Waits until the archive has everything committed so far. Returns the last commit.
fn wait_for_archive(socket: &mut Socket) -> u64 {
    let last = last_commit(socket);
    wait_until("all is archived", || {
        let archived = field(socket, "journal_archive_last_commit");
        archived.parse::<u64>().unwrap() >= last
    });
    last
}

/// A running `quoin restore --follow` into the folder `standby`.
struct Follower {
    child: Child,
    log: Arc<Mutex<String>>,
}

impl Follower {
    fn start(folder: &Path, from: Option<&Path>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quoin"));
        command.args(["restore", "--follow", "--data-dir", "standby"]);
        command.args(["--journal-archive", ARCHIVE]);
        if let Some(from) = from {
            command.arg("--from").arg(from);
        }
        let mut child = command
            .env("NO_COLOR", "1")
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let read = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                read.lock().unwrap().push_str(&format!("{line}\n"));
            }
        });
        Self { child, log }
    }

    fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until the log says that it has a commit.
    fn wait_for(&self, commit: u64) {
        let line = format!("INFO up to commit {commit} ");
        wait_until("the standby follows", || self.log().contains(&line));
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let mut kill = Command::new("kill");
        let status = kill.arg(format!("-{name}")).arg(id).status().unwrap();
        assert!(status.success());
    }

    /// Waits until it ends. Returns its exit code and its output.
    fn end(&mut self) -> (Option<i32>, String) {
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(started.elapsed() < PATIENCE, "{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut said = String::new();
        let mut out = self.child.stdout.take().unwrap();
        out.read_to_string(&mut said).unwrap();
        (status.code(), said)
    }

    /// Stops it cleanly. Returns its output.
    fn stop(mut self, signal: &str) -> String {
        self.signal(signal);
        let (code, said) = self.end();
        assert_eq!(code, Some(0), "{}", self.log());
        said
    }

    fn kill(mut self) {
        self.signal("KILL");
        self.end();
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The segments of the archive, in order.
fn segments(folder: &Path) -> Vec<PathBuf> {
    let store = folder.join(ARCHIVE).read_dir().unwrap().next().unwrap();
    let entries = store.unwrap().path().read_dir().unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Overwrites a byte of the last record.
fn damage(segment: &Path) {
    let mut bytes = std::fs::read(segment).unwrap();
    let at = bytes.len() - 1;
    bytes[at] ^= 1;
    std::fs::write(segment, bytes).unwrap();
}

/// Starts a standby, and stops it once it has a commit. It must then have everything that the
/// server had.
fn assert_caught_up(folder: &Path, backup: &Path, last: u64) {
    let follower = Follower::start(folder, Some(backup));
    follower.wait_for(last);
    follower.stop("TERM");
    assert!(rows(&folder.join("standby")) == rows(&folder.join("data")));
}

fn list(folder: &Path, data_dir: &str) -> String {
    let server = start_on(folder, data_dir).unwrap();
    let found = server.connect().run("LRANGE list 0 -1");
    stop(server);
    found.replace("\r\n", " ")
}

#[test]
fn a_standby_has_what_was_archived_before_its_server_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (mut server, mut socket) = start_filled(folder);
    let backup = backup(&server);
    let follower = Follower::start(folder, Some(&backup));
    follower.wait_for(last_commit(&mut socket));
    fill(&mut socket, "beside");
    socket.run("RPUSH list a b c");
    let last = wait_for_archive(&mut socket);
    follower.wait_for(last);
    server.signal("KILL");
    server.wait();
    let said = follower.stop("TERM");
    assert!(said.contains(&format!("up to commit {last} of ")), "{said}");
    assert!(rows(&folder.join("standby")) == rows(&folder.join("data")));
    assert!(list(folder, "standby").starts_with("*3 "));
}

#[test]
fn a_standby_that_was_stopped_goes_on_where_it_was_and_needs_no_backup() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (server, mut socket) = start_filled(folder);
    let backup = backup(&server);
    let mut last = wait_for_archive(&mut socket);
    for round in 0..3 {
        let from = Some(backup.as_path()).filter(|_| round == 0);
        let follower = Follower::start(folder, from);
        follower.wait_for(last);
        let said = follower.stop(if round == 1 { "INT" } else { "TERM" });
        assert!(said.contains(&format!("up to commit {last} of ")), "{said}");
        fill(&mut socket, &format!("round{round}"));
        last = wait_for_archive(&mut socket);
        if round == 0 {
            std::fs::remove_file(&backup).unwrap();
        }
    }
    stop(server);
    assert_caught_up(folder, &backup, last);
}

#[test]
fn a_standby_that_is_killed_again_and_again_misses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (server, mut socket) = start_filled(folder);
    let backup = backup(&server);
    for round in 0..12 {
        fill(&mut socket, &format!("round{}", round % 3));
        let follower = Follower::start(folder, Some(&backup));
        std::thread::sleep(Duration::from_millis(40 * round));
        follower.kill();
    }
    let last = wait_for_archive(&mut socket);
    stop(server);
    assert_caught_up(folder, &backup, last);
}

#[test]
fn a_gap_in_the_archive_ends_a_standby_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut from = None;
    for element in ["a", "b", "c"] {
        let server = start(folder);
        let mut socket = server.connect();
        socket.run(&format!("RPUSH list {element}"));
        if element == "a" {
            from = Some(backup(&server));
        }
        stop(server);
    }
    std::fs::remove_file(&segments(folder)[1]).unwrap();
    let mut follower = Follower::start(folder, from.as_deref());
    let (code, said) = follower.end();
    let log = follower.log();
    assert_eq!((code, said.as_str()), (Some(1), ""), "{log}");
    assert!(log.contains("is not in the archive"), "{log}");
    assert!(log.contains("standby has everything up to commit"), "{log}");
    assert_eq!(list(folder, "standby"), "*1 $1 a ");
}

#[test]
fn a_damaged_file_of_the_archive_ends_a_standby_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (server, mut socket) = start_with_list(folder);
    let backup = backup(&server);
    socket.run("RPUSH list b");
    let last = wait_for_archive(&mut socket);
    stop(server);
    let follower = Follower::start(folder, Some(&backup));
    follower.wait_for(last);
    follower.stop("TERM");
    let server = start(folder);
    let mut socket = server.connect();
    let before = last_commit(&mut socket);
    assert!(before >= last);
    socket.run("RPUSH list c");
    wait_for_archive(&mut socket);
    stop(server);
    damage(segments(folder).last().unwrap());
    let mut follower = Follower::start(folder, None);
    let (code, _) = follower.end();
    let log = follower.log();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("is damaged"), "{log}");
    let reached = format!("standby has everything up to commit {before} of ");
    assert!(log.contains(&reached), "{log}");
    assert_eq!(list(folder, "standby"), "*2 $1 a $1 b ");
}

#[test]
fn a_standby_waits_for_a_commit_that_a_crash_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (mut server, mut socket) = start_with_list(folder);
    let backup = backup(&server);
    socket.run("RPUSH list b");
    let last = wait_for_archive(&mut socket);
    server.signal("KILL");
    server.wait();
    let newest = segments(folder).pop().unwrap();
    let bytes = std::fs::read(&newest).unwrap();
    let mut file = std::fs::File::create(&newest).unwrap();
    file.write_all(&bytes[..bytes.len() - 3]).unwrap();
    let follower = Follower::start(folder, Some(&backup));
    wait_until("it waits", || {
        follower
            .log()
            .contains("the archive ends within the next commit")
    });
    let server = start(folder);
    let mut socket = server.connect();
    assert!(wait_for_archive(&mut socket) >= last);
    follower.wait_for(last_commit(&mut socket));
    follower.stop("TERM");
    stop(server);
    assert!(rows(&folder.join("standby")) == rows(&folder.join("data")));
}

#[test]
fn the_doctor_looks_into_a_standby_and_does_not_end_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (server, mut socket) = start_filled(folder);
    let backup = backup(&server);
    let follower = Follower::start(folder, Some(&backup));
    follower.wait_for(wait_for_archive(&mut socket));
    let beside = good(folder, &["doctor", "--data-dir", "standby"]);
    assert!(beside.contains("follows the archive of store"), "{beside}");
    follower.stop("TERM");
    let said = good(folder, &["doctor", "--deep", "--data-dir", "standby"]);
    assert!(said.contains("follows the archive of store"), "{said}");
    assert!(said.contains("ok    counters"), "{said}");
    let refused = quoin(folder, &["doctor", "--repair", "--data-dir", "standby"]);
    assert_eq!(refused.status.code(), Some(2));
    fill(&mut socket, "after");
    let last = wait_for_archive(&mut socket);
    let follower = Follower::start(folder, None);
    follower.wait_for(last);
    follower.stop("TERM");
    stop(server);
    assert!(rows(&folder.join("standby")) == rows(&folder.join("data")));
}

#[test]
fn a_folder_with_commits_of_its_own_is_no_standby() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (server, mut socket) = start_with_list(folder);
    let backup = backup(&server);
    let from = backup.to_str().unwrap();
    let last = wait_for_archive(&mut socket);
    let words = |data_dir: &'static str| {
        let words = ["restore", "--follow", "--journal-archive", ARCHIVE];
        [&words[..], &["--from", from, "--data-dir", data_dir]].concat()
    };
    let follower = Follower::start(folder, Some(&backup));
    follower.wait_for(last);
    let complaint = bad(folder, &words("standby"));
    assert!(complaint.contains("is in use by another"), "{complaint}");
    let refused = start_on(folder, "standby").err().unwrap();
    assert!(refused.contains("is in use by another"), "{refused}");
    follower.stop("TERM");
    let promoted = start_on(folder, "standby").unwrap();
    promoted.connect().run("RPUSH list b");
    assert!(promoted.log().contains("follows no archive"));
    stop(promoted);
    stop(server);
    for data_dir in ["standby", "data"] {
        let complaint = bad(folder, &words(data_dir));
        assert!(complaint.contains("follows no archive"), "{complaint}");
    }
    let words = [
        "restore",
        "--follow",
        "--journal-archive",
        ARCHIVE,
        "--data-dir",
        "none",
    ];
    let complaint = bad(folder, &words);
    assert!(complaint.contains("with --from"), "{complaint}");
}
