//! `quoin doctor` as a program: its report on stores that servers have used, and its exit code.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

#[path = "support/authority.rs"]
mod authority;
#[path = "support/doctor.rs"]
mod doctor;
#[path = "support/server.rs"]
mod server;

use std::path::Path;
use std::process::Command;

use authority::Authority;
use doctor::{doctor, healthy};
use quoin_layout::LAYOUT_VERSION;
use server::Server;

fn line<'s>(said: &'s str, check: &str) -> &'s str {
    said.lines()
        .find(|line| line.get(6..).is_some_and(|rest| rest.starts_with(check)))
        .unwrap_or_else(|| panic!("no line of {check}: {said}"))
}

/// Uses every type, and leaves clients in the middle of what they do.
fn use_everything(server: &Server, tag: &str) {
    let mut socket = server.connect();
    let long = "x".repeat(150_000);
    let mut waiting = server.connect();
    waiting.send("BLPOP nothing 0\r\n");
    for number in 0..60 {
        for command in [
            format!("RPUSH {tag}list{} a b {long}", number % 3),
            format!("LPOP {tag}list{} 2", (number + 1) % 3),
            format!("ZADD {tag}zset {number} m{} 7 {tag}", number % 9),
            format!("ZPOPMIN {tag}zset"),
            format!("PQ.PUSH {tag}pq {} v", number % 4),
            format!("PQ.POPMIN {tag}pq"),
            format!(
                "TASK.ADD {tag}tasks {number} job NEEDS gb {}",
                number % 4 + 1
            ),
            format!("TASK.ADD {tag}tasks {number} job DELAY 60000"),
            format!("TASK.TAKE {tag}tasks HAVING gb 3 LEASE 60000"),
            format!("TASK.TAKE {tag}short HAVING gb 3"),
            format!("TASK.ADD {tag}short 1 job NEEDS gb 1"),
            format!("RPUSH {tag}e{} a", number % 5),
            format!("PEXPIRE {tag}e{} {}", number % 5, 1 + number * 3),
            format!("RENAME {tag}list0 {tag}list1"),
            format!("COPY {tag}list1 {tag}list2 REPLACE"),
            format!("PUBLISH channel {number}"),
            format!("DEL {tag}list2"),
        ] {
            let reply = socket.run(&command);
            let is_fine = !reply.starts_with('-') || reply.contains("no such key");
            assert!(is_fine, "{command:.60}: {reply}");
        }
    }
    socket.run("SELECT 4");
    socket.run("RPUSH other a");
    socket.run("FLUSHDB");
    socket.run("SWAPDB 4 9");
}

#[test]
fn an_embedded_store_that_was_killed_is_healthy() {
    if server::is_on_foundationdb() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    for round in 0..2 {
        let server = Server::start_in(folder.path(), &[]).unwrap();
        use_everything(&server, &round.to_string());
        // Killed during its background work.
        drop(server);
        let said = healthy(folder.path(), &["--deep", "--data-dir", data]);
        assert!(line(&said, "folder").contains("flag --data-dir"), "{said}");
        assert!(line(&said, "journal").contains("whole records"), "{said}");
        let version = format!("version {LAYOUT_VERSION}");
        assert!(line(&said, "layout").contains(&version), "{said}");
        assert!(line(&said, "latency").contains("commit of a row"), "{said}");
        assert!(line(&said, "counters").contains("rows counted"), "{said}");
    }
    let (code, said) = doctor(folder.path(), &["--deep", "--repair", "--data-dir", data]);
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("repaired"), "{said}");
}

#[test]
fn a_server_that_has_the_store_open_is_asked() {
    if server::is_on_foundationdb() {
        return;
    }
    let server = Server::start_with(&["--requirepass", "secret"]);
    let port = server.address().port().to_string();
    let flags = [
        "--data-dir",
        "data",
        "--port",
        &port,
        "--requirepass",
        "secret",
    ];
    let said = healthy(server.folder(), &flags);
    let process = format!("process {} at ", server.process_id());
    assert!(line(&said, "server").contains(&process), "{said}");
    for check in ["folder", "reads", "disk", "store", "backups", "clients"] {
        line(&said, check);
    }

    let (code, said) = doctor(server.folder(), &[&flags[..], &["--deep"]].concat());
    assert_eq!(code, 1, "{said}");
    assert!(line(&said, "lock").contains("stop it first"), "{said}");
    // Without the password, and where no server is.
    let (code, said) = doctor(server.folder(), &flags[..4]);
    assert_eq!(code, 1, "{said}");
    assert!(line(&said, "server").contains("--password-file"), "{said}");
    let (code, said) = doctor(server.folder(), &["--data-dir", "data", "--port", "1"]);
    assert_eq!(code, 1, "{said}");
    assert!(line(&said, "server").contains("--server"), "{said}");
    // Another server is not mistaken for it.
    let other = Server::start();
    let port = other.address().port().to_string();
    let (code, said) = doctor(server.folder(), &["--data-dir", "data", "--port", &port]);
    assert_eq!(code, 1, "{said}");
    assert!(
        line(&said, "server").contains("give the address of the right one"),
        "{said}"
    );

    server.signal("STOP");
    let (code, said) = doctor(server.folder(), &flags);
    server.signal("CONT");
    assert_eq!(code, 2, "{said}");
    assert!(line(&said, "server").contains("does not answer"), "{said}");
}

fn free_port() -> u16 {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().port()
}

/// Asks for a healthy answer of this server.
#[track_caller]
fn finds(server: &Server, flags: &[&str], address: &str) {
    let said = healthy(server.folder(), &[&["--data-dir", "data"], flags].concat());
    let found = format!("process {} at {address}", server.process_id());
    assert!(line(&said, "server").contains(&found), "{said}");
}

#[test]
fn a_server_is_found_by_its_folder_wherever_it_listens() {
    if server::is_on_foundationdb() {
        return;
    }
    let server = Server::start();
    finds(&server, &[], &format!("redis://{}", server.address()));
    let socket = server.folder().join("quoin.sock");
    let socket = socket.to_str().unwrap();
    // With a Unix socket, port 0 would be none.
    let server = Server::start_with(&["--unixsocket", socket, "--port", &free_port().to_string()]);
    finds(&server, &[], &format!("unix://{socket}"));
    // Another address of the same server.
    let tcp = format!("redis://{}", server.address());
    finds(&server, &["--server", &tcp], &tcp);

    let ours = Authority::new();
    ours.sign("server");
    let port = free_port();
    let mut flags = ours.flags(port, "server", "yes");
    flags.extend(["--port".to_owned(), "0".to_owned()]);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let server = Server::start_with(&flags);
    let address = format!("rediss://127.0.0.1:{port}");
    finds(&server, &[], &address);
    let [ca, certificate, key] = ["ca.pem", "server.pem", "server.key"].map(|name| ours.text(name));
    let files = ["--cacert", &ca, "--cert", &certificate, "--key", &key];
    let flags = [&["--server", &address][..], &files].concat();
    finds(&server, &flags, &address);
}

#[test]
fn a_note_that_another_server_has_left_does_not_mislead() {
    if server::is_on_foundationdb() {
        return;
    }
    let (server, other) = (Server::start(), Server::start());
    let note = |server: &Server| server.folder().join("data/SERVER");
    std::fs::copy(note(&other), note(&server)).unwrap();
    let port = server.address().port();
    let file = server.folder().join("quoin.toml");
    std::fs::write(&file, format!("port = {port}\n")).unwrap();
    let flags = ["--config", file.to_str().unwrap()];
    finds(&server, &flags, &format!("redis://{}", server.address()));
    // It is removed with the server.
    let mut other = other;
    other.signal("TERM");
    other.wait();
    assert!(!note(&other).exists());
}

#[test]
fn a_folder_without_a_store_is_told_and_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = doctor(folder.path(), &["--data-dir", "nothing"]);
    assert_eq!(code, 1, "{said}");
    assert!(
        line(&said, "folder").contains("there is no store"),
        "{said}"
    );
    assert!(!folder.path().join("nothing").exists());
}

#[test]
fn a_wrong_command_line_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_quoin"))
        .args(["doctor", "--repare"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let output = Command::new(env!("CARGO_BIN_EXE_quoin"))
        .args(["doctor", "--help"])
        .output()
        .unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for word in [
        "--repair",
        "--deep",
        "--offline",
        "--data-dir",
        "Exits with 0",
    ] {
        assert!(help.contains(word), "{word}: {help}");
    }
}

#[cfg(feature = "fdb")]
mod on_foundationdb {
    use super::*;
    use quoin_base::random::{Random, SystemRandom};
    use quoin_layout::{Id, Layout, Position};
    use quoin_store::Store;
    use quoin_store_fdb::{FdbOptions, FdbStore};

    #[test]
    fn a_cluster_whose_servers_were_killed_is_healthy_and_a_damaged_one_is_repaired() {
        let Some(cluster_file) = server::foundationdb::cluster_file() else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let root_prefix = format!("doctor-{:016x}", SystemRandom.next_u64());
        let flags = [
            "--store",
            "fdb",
            "--cluster-file",
            cluster_file.to_str().unwrap(),
            "--root-prefix",
            &root_prefix,
        ];
        let (code, said) = doctor(folder.path(), &flags);
        assert_eq!(code, 0, "{said}");
        assert!(
            line(&said, "layout").contains("there is nothing under"),
            "{said}"
        );
        let servers = [Server::start_with(&flags), Server::start_with(&flags)];
        for (number, server) in servers.iter().enumerate() {
            use_everything(server, &number.to_string());
        }
        let deep = [&flags[..], &["--deep"]].concat();
        // While they run, and once they were killed.
        let (code, said) = doctor(folder.path(), &deep);
        assert_eq!(code, 0, "{said}");
        assert!(line(&said, "library").contains("client 7."), "{said}");
        assert!(
            line(&said, "cluster file").contains("flag --cluster-file"),
            "{said}"
        );
        assert!(
            line(&said, "cluster  ").contains("a read version takes"),
            "{said}"
        );
        drop(servers);
        let (code, said) = doctor(folder.path(), &deep);
        assert_eq!(code, 1, "{said}");
        let wrong: Vec<&str> = said
            .lines()
            .filter(|line| !line.starts_with("ok"))
            .collect();
        assert!(
            matches!(wrong[..], [line] if line.contains("2 show no sign of life")),
            "{said}"
        );

        let options = FdbOptions {
            cluster_file: Some(cluster_file.to_owned()),
            ..FdbOptions::default()
        };
        let store = FdbStore::open(&options).unwrap();
        let layout = Layout::new(&root_prefix);
        let lost = Id {
            instance: 900,
            sequence: 1,
        };
        let runtime = tokio::runtime::Runtime::new().unwrap();
        // The fields of the client's status that show a process of another version.
        let mut status = runtime.block_on(store.client_status()).unwrap();
        status.retain(|char| !char.is_whitespace());
        let connection = status
            .split(['{', '}'])
            .find(|part| part.contains("\"Compatible\":true"));
        assert!(
            connection.is_some_and(|part| part.contains("\"Address\":\"")),
            "{status}"
        );
        let transaction = store.begin_write().unwrap();
        let position = Position::pushed(0, 7, 0);
        transaction.set(&layout.element_key(lost, &position), b"\0lost");
        runtime.block_on(transaction.commit()).unwrap();
        let (code, said) = doctor(folder.path(), &flags);
        assert_eq!(code, 1, "{said}");
        assert!(
            line(&said, "data  ").contains("1 that belongs to no key"),
            "{said}"
        );
        let repair = [&deep[..], &["--repair", "--offline"]].concat();
        let (code, said) = doctor(folder.path(), &repair);
        assert_eq!(code, 0, "{said}");
        assert!(line(&said, "data  ").contains("repaired"), "{said}");
        assert!(line(&said, "operations").contains("removed"), "{said}");
        let (code, said) = doctor(folder.path(), &deep);
        assert_eq!(code, 0, "{said}");
        assert!(line(&said, "operations").contains("none"), "{said}");
    }

    #[test]
    fn a_cluster_that_is_not_there_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let flags = ["--store", "fdb", "--cluster-file", "nothing.cluster"];
        let (code, said) = doctor(folder.path(), &flags);
        assert_eq!(code, 2, "{said}");
        assert!(line(&said, "cluster file").starts_with("fail"), "{said}");
        // Nothing listens on the discard port of the loopback.
        let file = folder.path().join("fdb.cluster");
        std::fs::write(&file, "test:test@127.0.0.1:9\n").unwrap();
        let (code, said) = doctor(
            folder.path(),
            &["--store", "fdb", "--cluster-file", "fdb.cluster"],
        );
        assert_eq!(code, 2, "{said}");
        assert!(line(&said, "cluster  ").starts_with("fail"), "{said}");
    }
}

/// A store that was killed with commits that only the journal has. The first checkpoint comes a
/// second after the start.
fn killed_with_journal(folder: &Path) {
    let server = Server::start_in(folder, &[]).unwrap();
    let mut socket = server.connect();
    for number in 1..=5 {
        assert_eq!(socket.run("RPUSH list x"), format!(":{number}\r\n"));
    }
    server.signal("KILL");
}

#[test]
fn a_damaged_journal_is_told_and_left_as_it_is() {
    if server::is_on_foundationdb() {
        return;
    }
    /// If the machine stalls for a second, a checkpoint covers what is needed here.
    const TRIES: usize = 3;
    for _ in 0..TRIES {
        let folder = tempfile::tempdir().unwrap();
        killed_with_journal(folder.path());
        let journal = folder.path().join("data/JOURNAL.0");
        let whole = std::fs::read(&journal).unwrap();
        let mut damaged = whole.clone();
        damaged[32 + 48 + 5] ^= 1;
        std::fs::write(&journal, &damaged).unwrap();
        let (code, said) = doctor(folder.path(), &["--data-dir", "data"]);
        assert_eq!(code, 2, "{said}");
        assert!(line(&said, "journal").contains("damaged: commit"), "{said}");
        assert!(std::fs::read(&journal).unwrap() == damaged);
        let Err(refused) = Server::start_in(folder.path(), &[]) else {
            continue;
        };
        assert!(refused.contains("--accept-journal-loss"), "{refused}");
        assert!(refused.contains("JOURNAL.0 at byte 32"), "{refused}");
        std::fs::write(&journal, &whole).unwrap();
        let server = Server::start_in(folder.path(), &[]).unwrap();
        assert_eq!(server.connect().run("LLEN list"), ":5\r\n");
        return;
    }
    panic!("no start was refused");
}
