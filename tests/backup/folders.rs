//! What the tests share: running programs, and the content of folders.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Command, Output};
use std::task::{Context, Poll, Waker};

use quoin_store::{Isolation, RangeQuery, Store};
use quoin_store_embedded::{EmbeddedOptions, EmbeddedStore};

use crate::server::{Server, Socket};

pub(crate) type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// Runs `quoin` with these words, in a folder.
pub(crate) fn quoin(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quoin"))
        .args(words)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// Runs it and expects success. Returns its output.
pub(crate) fn good(folder: &Path, words: &[&str]) -> String {
    let output = quoin(folder, words);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {complaint}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs it and expects failure. Returns the error.
pub(crate) fn bad(folder: &Path, words: &[&str]) -> String {
    let output = quoin(folder, words);
    assert_eq!(output.status.code(), Some(1), "{words:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// The words for `quoin backup` to find a server.
pub(crate) fn backup_of(server: &Server) -> Vec<String> {
    let port = server.address().port().to_string();
    ["backup", "--data-dir", "data", "--port", &port]
        .map(str::to_owned)
        .to_vec()
}

/// Makes a running server write a backup. Returns its path.
pub(crate) fn backup(server: &Server) -> PathBuf {
    let words = backup_of(server);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = good(server.folder(), &words);
    let (path, rest) = said.split_once(": ").unwrap();
    assert!(rest.ends_with("verified\n"), "{said}");
    server.folder().join(path)
}

pub(crate) fn restore(folder: &Path, backup: &Path, to: &str, more: &[&str]) -> String {
    let from = backup.to_str().unwrap();
    let words = ["restore", "--from", from, "--data-dir", to];
    good(folder, &[&words, more].concat())
}

/// Every row of a stopped store, and its last commit.
pub(crate) fn rows(data_dir: &Path) -> (Rows, u64) {
    let store = EmbeddedStore::open(data_dir, EmbeddedOptions::default()).unwrap();
    let snapshot = store.begin_read().unwrap();
    let query = RangeQuery {
        begin: b"",
        end: &[0xff],
        limit: usize::MAX,
        reverse: false,
        isolation: Isolation::Snapshot,
    };
    let read = pin!(snapshot.get_range(query));
    let Poll::Ready(rows) = read.poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("the embedded store answers at once");
    };
    let rows = rows.unwrap().into_iter();
    let rows = rows.map(|row| (row.key.to_vec(), row.value.to_vec()));
    (rows.collect(), store.last_commit())
}

/// A server on another data folder within a folder. The error is its log.
pub(crate) fn start_on(folder: &Path, data_dir: &str) -> Result<Server, String> {
    let flags = ["--data-dir", data_dir].map(str::to_owned);
    Server::start_on_store(folder, &flags, &[])
}

/// Stops a server in order.
pub(crate) fn stop(mut server: Server) {
    server.signal("TERM");
    assert!(server.wait().success());
}

/// Puts values of every type into a server, some of them large.
pub(crate) fn fill(socket: &mut Socket, tag: &str) {
    let long = "x".repeat(30_000);
    for number in 0..30 {
        for command in [
            format!("RPUSH {tag}list a{number} {long} b"),
            format!("LPOP {tag}list"),
            format!("ZADD {tag}zset {number} m{}", number % 9),
            format!("PQ.PUSH {tag}pq {} v{number}", number % 4),
            format!("TASK.ADD {tag}tasks {number} job NEEDS gb 1"),
            format!("SELECT {}", number % 3),
        ] {
            let reply = socket.run(&command);
            assert!(!reply.starts_with('-'), "{command:.60}: {reply}");
        }
    }
    socket.run("SELECT 0");
}

/// The last commit, from INFO.
pub(crate) fn last_commit(socket: &mut Socket) -> u64 {
    field(socket, "last_commit").parse().unwrap()
}

/// A field of INFO persistence.
pub(crate) fn field(socket: &mut Socket, name: &str) -> String {
    let text = socket.run("INFO persistence");
    let found = text
        .split("\r\n")
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    found.unwrap_or_else(|| panic!("no {name}")).to_owned()
}
