//! SIGHUP, and the log's file and form.

use std::os::unix::net::UnixDatagram;
use std::path::Path;

use crate::server::{PATIENCE, Server, wait_until};

fn start(folder: &Path, text: &str) -> Server {
    let path = folder.join("quoin.toml");
    std::fs::write(&path, text).unwrap();
    Server::start_in(folder, &["--config", &path.display().to_string()]).unwrap()
}

/// Changes the file, and waits for the expected log line.
fn reload(server: &Server, text: &str, expected: &str) {
    std::fs::write(server.folder().join("quoin.toml"), text).unwrap();
    server.signal("HUP");
    wait_until(expected, || server.log().contains(expected));
}

fn get(server: &Server, name: &str) -> String {
    let reply = server.connect().run(&format!("CONFIG GET {name}"));
    reply.lines().nth(4).unwrap_or_default().to_owned()
}

#[test]
fn sighup_takes_over_what_has_changed_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "timeout = 5\nslowlog-max-len = 7\n");
    let set = server
        .connect()
        .run("CONFIG SET maxclients 99 slowlog-max-len 8");
    assert_eq!(set, "+OK\r\n");
    let text = "timeout = 6\nslowlog-max-len = 7\nio-threads = 3\n";
    reload(
        &server,
        text,
        "SIGHUP: reloaded the settings, changed timeout",
    );
    let log = server.log();
    assert!(
        log.contains("the changes of io-threads need a restart"),
        "{log}"
    );
    assert_eq!(get(&server, "timeout"), "6");
    // What the file does not contain, or contains unchanged, stays as CONFIG SET has set it.
    assert_eq!(get(&server, "maxclients"), "99");
    assert_eq!(get(&server, "slowlog-max-len"), "8");
    // A setting removed from the file is treated as if it had never been there.
    reload(
        &server,
        "io-threads = 3\n",
        "changed timeout, slowlog-max-len",
    );
    assert_eq!(get(&server, "timeout"), "0");
    assert_eq!(get(&server, "slowlog-max-len"), "128");
}

#[test]
fn a_wrong_file_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path(), "timeout = 5\n");
    for (text, expected) in [
        ("timeout = 6\nmaxclients = 0\n", "maxclients"),
        ("timeout = 6\nnonsense = 1\n", "no such setting: 'nonsense'"),
        ("timeout = \n", "not TOML"),
    ] {
        reload(&server, text, expected);
        assert_eq!(get(&server, "timeout"), "5");
    }
    wait_until("it is logged", || {
        server.log().contains("SIGHUP: no setting was changed")
    });
    std::fs::remove_file(folder.path().join("quoin.toml")).unwrap();
    server.signal("HUP");
    wait_until("it is logged", || server.log().contains("No such file"));
    assert_eq!(get(&server, "timeout"), "5");
    assert!(server.ending().is_none());
}

/// A server whose log is a file, so it cannot be awaited in the usual way.
fn start_with_log_file(folder: &Path, more: &[&str]) -> std::process::Child {
    std::process::Command::new(env!("CARGO_BIN_EXE_quoin"))
        .args([
            "--port",
            "0",
            "--logfile",
            "quoin.log",
            "--data-dir",
            "data",
        ])
        .args(more)
        .current_dir(folder)
        .spawn()
        .unwrap()
}

fn stop(mut child: std::process::Child) {
    signal(&child, "TERM");
    assert!(child.wait().unwrap().success());
}

fn signal(child: &std::process::Child, name: &str) {
    let mut kill = std::process::Command::new("kill");
    kill.args([&format!("-{name}"), &child.id().to_string()]);
    assert!(kill.status().unwrap().success());
}

#[test]
fn the_log_file_is_opened_again_at_sighup() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quoin.log");
    let said = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let child = start_with_log_file(folder.path(), &[]);
    wait_until("it listens", || said(&path).contains(" listens on "));
    let moved = folder.path().join("quoin.log.1");
    std::fs::rename(&path, &moved).unwrap();
    signal(&child, "HUP");
    wait_until("it is opened", || {
        said(&path).contains("reopened the log file")
    });
    assert!(!said(&moved).contains("reopened the log file"));
    stop(child);
    assert!(said(&path).contains("stopped"));
    assert!(!said(&path).contains('\u{1b}'), "{}", said(&path));
}

#[test]
fn lines_of_json_are_objects_with_level_and_message() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quoin.log");
    let said = || std::fs::read_to_string(&path).unwrap_or_default();
    let child = start_with_log_file(folder.path(), &["--log-format", "json"]);
    wait_until("it listens", || said().contains(" listens on "));
    stop(child);
    let mut messages = Vec::new();
    for line in said().lines() {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        let message = object["message"].as_str().unwrap();
        // How full the disk is says nothing about the code.
        let level = match message {
            "the disk is nearly full" => "WARN",
            _ => "INFO",
        };
        assert_eq!(object["level"], level, "{line}");
        assert!(
            object["timestamp"].as_str().unwrap().ends_with('Z'),
            "{line}"
        );
        messages.push(message.to_owned());
    }
    assert!(
        messages.iter().any(|message| message == "stopped"),
        "{messages:?}"
    );
}

#[test]
fn a_supervisor_is_told_of_the_life_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let notification = || {
        let mut buffer = [0; 256];
        let count = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..count])
            .trim_end()
            .to_owned()
    };
    let expect_next = |state: &str| {
        let found = std::iter::repeat_with(notification).find(|one| one != "WATCHDOG=1");
        let found = found.unwrap();
        assert!(found.starts_with(state), "{found}");
    };
    let variables = [
        ("NOTIFY_SOCKET", path.to_str().unwrap()),
        ("WATCHDOG_USEC", "100000"),
    ];
    let flags = ["--data-dir".to_owned(), "data".to_owned()];
    let mut server = Server::start_on_store(folder.path(), &flags, &variables).unwrap();
    expect_next("READY=1");
    let info = server.connect().run("INFO server");
    assert!(
        info.contains("\r\nprocess_supervised:systemd\r\n"),
        "{info}"
    );
    server.signal("HUP");
    expect_next("RELOADING=1\nMONOTONIC_USEC=");
    expect_next("READY=1");
    while notification() != "WATCHDOG=1" {}
    server.signal("TERM");
    expect_next("STOPPING=1");
    assert!(server.wait().success());
}

#[test]
fn a_password_that_the_file_changes_holds_from_sighup_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "requirepass = \"first-secret\"\n");
    let auth = |password: &str| server.connect().run(&format!("AUTH {password}"));
    let mut before = server.connect();
    assert_eq!(before.run("AUTH first-secret"), "+OK\r\n");
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    assert_eq!(auth("second-secret"), wrong);

    reload(
        &server,
        "requirepass = \"second-secret\"\n",
        "changed requirepass",
    );
    // The log comes first.
    wait_until("the new password holds", || {
        auth("second-secret") == "+OK\r\n"
    });
    assert_eq!(auth("first-secret"), wrong);
    assert!(server.connect().run("PING").starts_with("-NOAUTH "));
    // As in Redis, clients that have authenticated remain so.
    assert_eq!(
        before.run("CONFIG GET requirepass"),
        "*2\r\n$11\r\nrequirepass\r\n$13\r\nsecond-secret\r\n"
    );

    reload(&server, "", "changed requirepass");
    wait_until("no password is needed", || {
        server.connect().run("PING") == "+PONG\r\n"
    });
    let log = server.log();
    assert!(!log.contains("-secret"), "{log}");
}
