//! Faulty data folders, with the program and with processes that may crash on them: others'
//! folders, truncated and damaged data files, copies of a running server's files.
//!
//! `QUOIN_TEST_ROUNDS`: how many bits are flipped, instead of the few that CI has time for.
//! `QUOIN_TEST_SEED`: which ones.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

#[path = "support/server.rs"]
mod server;

use std::collections::BTreeMap;
use std::future::Future;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::pin::pin;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use quoin_base::random::{Random, SeededRandom};
use quoin_store::{Isolation, RangeQuery, Store, StoreError};
use quoin_store_embedded::{EmbeddedOptions, EmbeddedStore, make_store};
use server::Server;

const MAP_BYTES: usize = 64 << 20;
const FLIPS: u64 = 30;
/// The folder that a child of this test reads.
const FOLDER_VARIABLE: &str = "QUOIN_TEST_DAMAGED_FOLDER";

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn quoin(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quoin"))
        .args(arguments)
        .env("NO_COLOR", "1")
        .current_dir(folder)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    let both = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8(both).unwrap()
}

fn copy_folder(from: &Path, to: &Path) {
    let status = Command::new("cp")
        .arg("-r")
        .arg(from)
        .arg(to)
        .status()
        .unwrap();
    assert!(status.success());
}

/// Stops a server cleanly.
fn stop(mut server: Server) {
    server.signal("TERM");
    assert!(server.wait().success());
}

#[test]
fn a_folder_that_cannot_be_made_is_named_in_full_and_how_to_name_another() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let output = quoin(folder.path(), &["--port", "0", "--data-dir", "file/data"]);
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    let whole = folder.path().canonicalize().unwrap().join("file/data");
    let expected = format!("cannot create data folder {}: ", whole.display());
    assert!(
        said.contains(&expected) && said.contains("--data-dir"),
        "{said}"
    );
}

#[test]
fn the_start_line_tells_a_new_store_from_one_that_was_there() {
    if server::is_on_foundationdb() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = Server::start_in(folder.path(), &[]).unwrap();
    assert!(
        first.log().contains("created a new store"),
        "{}",
        first.log()
    );
    let id = |server: &Server| {
        let info = server.connect().run("INFO quoin");
        let line = info.lines().find(|line| line.starts_with("store_id:"));
        line.unwrap().to_owned()
    };
    let first_id = id(&first);
    first.connect().run("RPUSH list a b c");
    stop(first);
    let second = Server::start_in(folder.path(), &[]).unwrap();
    let log = second.log();
    assert!(log.contains("opened an existing store"), "{log}");
    for word in [
        "folder=",
        "id=",
        "format=3",
        "layout=",
        "rows=",
        "data_bytes=",
    ] {
        assert!(log.contains(word), "{word}: {log}");
    }
    assert_eq!(id(&second), first_id);
    assert_eq!(first_id.len(), "store_id:".len() + 32);
}

#[test]
fn a_start_after_a_kill_tells_what_it_recovered() {
    if server::is_on_foundationdb() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(folder.path(), &[]).unwrap();
    server.connect().run("RPUSH list a b c");
    drop(server);
    let server = Server::start_in(folder.path(), &[]).unwrap();
    let log = server.log();
    assert!(
        log.contains("recovered") && log.contains("commits from the journal"),
        "{log}"
    );
}

/// Starts on what a killed server has left, after something was done to its folder. Returns the
/// output of the refused start, and of the doctor.
fn refused_after_kill(damage: impl FnOnce(&Path)) -> [String; 2] {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(folder.path(), &[]).unwrap();
    let mut socket = server.connect();
    for number in 1..=400 {
        assert_eq!(socket.run("RPUSH list a"), format!(":{number}\r\n"));
    }
    drop(server);
    damage(&folder.path().join("data"));
    let doctor = quoin(folder.path(), &["doctor", "--data-dir", "data"]);
    assert_eq!(doctor.status.code(), Some(2), "{}", said(&doctor));
    let refused = Server::start_in(folder.path(), &[]).err();
    let accepting = ["--accept-journal-loss", "yes"];
    drop(Server::start_in(folder.path(), &accepting).unwrap());
    Server::start_in(folder.path(), &[]).unwrap();
    [refused.expect("the start must be refused"), said(&doctor)]
}

#[test]
fn a_removed_or_emptied_journal_file_is_damage() {
    if server::is_on_foundationdb() {
        return;
    }
    let remove = |folder: &Path, names: &[&str]| {
        for name in names {
            std::fs::remove_file(folder.join(name)).unwrap();
        }
    };
    let all = ["JOURNAL.0", "JOURNAL.1", "CHECKPOINT", "OPEN"];
    for names in [&all[..1], &all[1..2], &all[..2], &all[..3], &all] {
        let [server, doctor] = refused_after_kill(|folder| remove(folder, names));
        for said in [server, doctor] {
            assert!(said.contains("damaged: JOURNAL."), "{names:?}: {said}");
            assert!(said.contains("--accept-journal-loss"), "{names:?}: {said}");
        }
    }
    for name in ["JOURNAL.0", "JOURNAL.1"] {
        let cut = |folder: &Path| std::fs::write(folder.join(name), b"").unwrap();
        let [server, _] = refused_after_kill(cut);
        assert!(
            server.contains(&format!("{name} is missing or empty")),
            "{server}"
        );
    }
}

#[test]
fn a_running_servers_folder_stays_locked_without_its_lock_file() {
    if server::is_on_foundationdb() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(folder.path(), &[]).unwrap();
    server.connect().run("RPUSH list job");
    let lock = folder.path().join("data/LOCK");
    std::fs::remove_file(&lock).unwrap();
    let refused = Server::start_in(folder.path(), &[]).err().unwrap();
    assert!(refused.contains("in use"), "{refused}");
    let port = server.address().port().to_string();
    let on_data = ["--data-dir", "data", "--port", &port];
    let compact = quoin(folder.path(), &["compact", "--data-dir", "data"]);
    assert!(said(&compact).contains("in use"), "{}", said(&compact));
    let doctor = quoin(folder.path(), &[&["doctor"], on_data.as_slice()].concat());
    assert!(said(&doctor).contains("server"), "{}", said(&doctor));
    assert_ne!(doctor.status.code(), Some(2), "{}", said(&doctor));
    let backup = quoin(folder.path(), &[&["backup"], on_data.as_slice()].concat());
    assert!(backup.status.success(), "{}", said(&backup));
    let backups = folder.path().join("data/backups");
    let backup = backups.read_dir().unwrap().next().unwrap().unwrap().path();
    let from = backup.to_str().unwrap();
    let restore = ["restore", "--from", from, "--data-dir", "data"];
    let restore = quoin(folder.path(), &restore);
    assert!(said(&restore).contains("in use"), "{}", said(&restore));
    // No second server starts even after all files of the folder are removed.
    for entry in folder.path().join("data").read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::remove_file(path).unwrap();
        }
    }
    std::fs::remove_dir_all(&backups).unwrap();
    assert!(Server::start_in(folder.path(), &[]).is_err());
    assert_eq!(server.connect().run("LPOP list"), "$3\r\njob\r\n");
}

#[test]
fn a_server_does_not_start_in_a_folder_of_others_and_leaves_nothing_there() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("dump.rdb"), b"REDIS0011").unwrap();
    let output = quoin(folder.path(), &["--port", "0", "--data-dir", "."]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("dump.rdb"), "{}", said(&output));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_cut_data_file_is_refused_with_words() {
    if server::is_on_foundationdb() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(folder.path(), &[]).unwrap();
    let mut socket = server.connect();
    for _ in 0..50 {
        socket.run(&format!("RPUSH list {}", "x".repeat(2000)));
    }
    stop(server);
    let data = folder.path().join("data/data.mdb");
    let whole = std::fs::read(&data).unwrap();
    for length in [0, 100, 4096, 8192, whole.len() / 2, whole.len() - 4096] {
        std::fs::write(&data, &whole[..length]).unwrap();
        let output = quoin(folder.path(), &["--port", "0", "--data-dir", "data"]);
        assert_eq!(output.status.code(), Some(1), "{length}: {}", said(&output));
        assert!(
            said(&output).contains("data.mdb"),
            "{length}: {}",
            said(&output)
        );
        let output = quoin(folder.path(), &["doctor", "--data-dir", "data"]);
        assert_eq!(output.status.code(), Some(2), "{length}: {}", said(&output));
        assert!(
            said(&output).contains("fail  data file"),
            "{length}: {}",
            said(&output)
        );
    }
    std::fs::write(&data, &whole).unwrap();
    let server = Server::start_in(folder.path(), &[]).unwrap();
    assert_eq!(server.connect().run("LLEN list"), ":50\r\n");
}

#[test]
fn copies_of_a_running_servers_folder_are_refused_and_one_of_a_stopped_one_is_not() {
    if server::is_on_foundationdb() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(folder.path(), &[]).unwrap();
    let copies = tempfile::tempdir().unwrap();
    let is_over = AtomicBool::new(false);
    let pushed = std::thread::scope(|scope| {
        let pushing = scope.spawn(|| {
            let mut socket = server.connect();
            let command = format!("RPUSH list {}", "x".repeat(2000));
            let mut pushed = 0;
            while !is_over.load(Ordering::SeqCst) {
                assert!(socket.run(&command).starts_with(':'));
                pushed += 1;
            }
            pushed
        });
        for number in 0..5 {
            let copy = copies.path().join(number.to_string());
            copy_folder(&folder.path().join("data"), &copy);
            let path = copy.to_str().unwrap();
            let output = quoin(copies.path(), &["--port", "0", "--data-dir", path]);
            assert_eq!(output.status.code(), Some(1), "{}", said(&output));
            assert!(said(&output).contains("quoin backup"), "{}", said(&output));
            let output = quoin(copies.path(), &["doctor", "--data-dir", path]);
            assert_eq!(output.status.code(), Some(2), "{}", said(&output));
            assert!(said(&output).contains("fail  folder"), "{}", said(&output));
        }
        is_over.store(true, Ordering::SeqCst);
        pushing.join().unwrap()
    });
    stop(server);
    let last = copies.path().join("last");
    std::fs::create_dir(&last).unwrap();
    copy_folder(&folder.path().join("data"), &last.join("data"));
    let server = Server::start_in(&last, &[]).unwrap();
    assert_eq!(server.connect().run("LLEN list"), format!(":{pushed}\r\n"));
}

#[test]
fn a_killed_servers_folder_that_was_copied_is_opened_where_that_is_accepted() {
    if server::is_on_foundationdb() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(folder.path(), &[]).unwrap();
    server.connect().run("RPUSH list a b c");
    drop(server);
    let other = tempfile::tempdir().unwrap();
    copy_folder(&folder.path().join("data"), &other.path().join("data"));
    assert!(Server::start_in(other.path(), &[]).is_err());
    let server = Server::start_in(other.path(), &["--accept-copied-data-dir", "yes"]).unwrap();
    assert_eq!(server.connect().run("LLEN list"), ":3\r\n");
}

#[test]
fn compacting_a_stopped_store_says_what_it_gave_back() {
    if server::is_on_foundationdb() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(folder.path(), &[]).unwrap();
    let mut socket = server.connect();
    for _ in 0..400 {
        socket.run(&format!("RPUSH list {}", "x".repeat(9000)));
    }
    let refused = quoin(folder.path(), &["compact", "--data-dir", "data"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).contains("in use"), "{}", said(&refused));
    stop(server);
    let server = Server::start_in(folder.path(), &[]).unwrap();
    server.connect().run("LTRIM list 0 3");
    stop(server);
    let bytes = || {
        folder
            .path()
            .join("data/data.mdb")
            .metadata()
            .unwrap()
            .len()
    };
    let before = bytes();
    let output = quoin(folder.path(), &["compact", "--data-dir", "data"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("freed"), "{}", said(&output));
    assert!(bytes() * 5 < before, "{} {before}", bytes());
    let server = Server::start_in(folder.path(), &[]).unwrap();
    assert_eq!(server.connect().run("LLEN list"), ":4\r\n");
    let nothing = quoin(folder.path(), &["compact", "--data-dir", "nothing"]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(said(&nothing).contains("no store"), "{}", said(&nothing));
    assert!(!folder.path().join("nothing").exists());
}

#[test]
fn a_damaged_row_gives_an_error_that_names_it_and_others_are_served() {
    if server::is_on_foundationdb() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(folder.path(), &[]).unwrap();
    let mut socket = server.connect();
    for list in ["first", "second", "third"] {
        socket.run(&format!("RPUSH {list} in-{list}"));
    }
    stop(server);
    let data = folder.path().join("data/data.mdb");
    let mut bytes = std::fs::read(&data).unwrap();
    let value = b"in-second";
    let found: Vec<usize> = (0..bytes.len() - value.len())
        .filter(|at| bytes[*at..].starts_with(value))
        .collect();
    assert!(!found.is_empty());
    for at in found {
        bytes[at + 3] ^= 4;
    }
    std::fs::write(&data, bytes).unwrap();
    let server = Server::start_in(folder.path(), &[]).unwrap();
    let mut socket = server.connect();
    for _ in 0..20 {
        let reply = socket.run("LRANGE second 0 -1");
        assert!(
            reply.starts_with("-MISCONF Store is damaged: the row "),
            "{reply}"
        );
        assert!(reply.contains("data.mdb"), "{reply}");
        let reply = socket.run("LPOP second");
        assert!(reply.starts_with("-MISCONF Store is damaged"), "{reply}");
    }
    assert_eq!(socket.run("LPOP first"), "$8\r\nin-first\r\n");
    assert_eq!(socket.run("RPUSH third more"), ":2\r\n");
    assert_eq!(socket.run("LPOP third"), "$8\r\nin-third\r\n");
    // Commands that need not read it can remove it.
    let told = server.log().matches("is damaged").count();
    assert_eq!(told, 1, "{}", server.log());
    stop(server);
    let output = quoin(folder.path(), &["doctor", "--deep", "--data-dir", "data"]);
    assert_eq!(output.status.code(), Some(2));
    let report = said(&output);
    assert!(report.contains("fail  data file     1 of "), "{report}");
    let server = Server::start_in(folder.path(), &[]).unwrap();
    assert_eq!(server.connect().run("DEL second"), ":1\r\n");
    assert_eq!(server.connect().run("RPUSH second again"), ":1\r\n");
    assert_eq!(server.connect().run("LPOP second"), "$5\r\nagain\r\n");
}

#[test]
fn a_damaged_length_fails_the_commands_on_its_key_and_no_others() {
    if server::is_on_foundationdb() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(folder.path(), &[]).unwrap();
    for list in ["first", "second", "third"] {
        server.connect().run(&format!("RPUSH {list} a"));
    }
    stop(server);
    let data = folder.path().join("data/data.mdb");
    let mut bytes = std::fs::read(&data).unwrap();
    // The end of its key, followed by the checksums and the number.
    let key = b"\x01second\x00\x14";
    let found: Vec<usize> = (0..bytes.len() - key.len())
        .filter(|at| bytes[*at..].starts_with(key))
        .collect();
    assert!(!found.is_empty());
    for at in found {
        bytes[at + key.len() + 8] ^= 2;
    }
    std::fs::write(&data, bytes).unwrap();
    let server = Server::start_in(folder.path(), &[]).unwrap();
    let mut socket = server.connect();
    for round in 2..20 {
        socket.send("RPUSH first b\r\nRPUSH second b\r\nLPUSH third b\r\nLLEN second\r\n");
        assert_eq!(socket.reply(), format!(":{round}\r\n"));
        assert!(socket.reply().starts_with("-MISCONF Store is damaged"));
        assert_eq!(socket.reply(), format!(":{round}\r\n"));
        assert!(socket.reply().starts_with("-MISCONF Store is damaged"));
    }
}

/// Rows like those of queues: many small ones, some long.
fn rows() -> Rows {
    let random = SeededRandom::new(1);
    (0..1500_u64)
        .map(|number| {
            let key = [b"queue".as_slice(), &(number * 7).to_be_bytes()].concat();
            let length = [0, 8, 40, 100, 900, 3000][random.below(6) as usize];
            (key, vec![number as u8; length])
        })
        .collect()
}

fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the embedded store must answer at once"),
    }
}

/// Reads everything in several ways. Panics if anything is wrong without an error. Returns the
/// number of errors.
fn read_all(store: &EmbeddedStore, expected: &Rows) -> usize {
    let snapshot = store.begin_read().unwrap();
    let mut errors = 0;
    let mut count = |error: StoreError| {
        assert!(matches!(error, StoreError::Damaged(_)), "{error}");
        assert!(error.to_string().contains("data.mdb"), "{error}");
        errors += 1;
    };
    for (key, value) in expected {
        match now(snapshot.get(key, Isolation::Snapshot)) {
            Ok(found) => assert!(found.as_deref() == Some(value), "WRONG: one key"),
            Err(error) => count(error),
        }
        let missing = [key.as_slice(), b"+"].concat();
        match now(snapshot.get(&missing, Isolation::Snapshot)) {
            Ok(found) => assert!(found.is_none(), "WRONG: a key that is not there"),
            Err(error) => count(error),
        }
    }
    let keys: Vec<&Vec<u8>> = expected.keys().collect();
    for (at, begin) in keys.iter().enumerate().step_by(7) {
        for (limit, reverse) in [(1, false), (1, true), (40, false), (40, true)] {
            let end = &[0xff];
            let query = match reverse {
                false => RangeQuery {
                    begin,
                    end,
                    limit,
                    reverse,
                    isolation: Isolation::Snapshot,
                },
                true => RangeQuery {
                    begin: b"",
                    end: begin,
                    limit,
                    reverse,
                    isolation: Isolation::Snapshot,
                },
            };
            let wanted: Vec<&Vec<u8>> = match reverse {
                false => keys[at..].iter().take(limit).copied().collect(),
                true => keys[..at].iter().rev().take(limit).copied().collect(),
            };
            match now(snapshot.get_range(query)) {
                Ok(found) => {
                    let found: Vec<_> = found.iter().map(|row| (&*row.key, &*row.value)).collect();
                    let is_right = found.len() == wanted.len()
                        && found.iter().zip(&wanted).all(|((key, value), wanted)| {
                            key == wanted && *value == expected[*wanted].as_slice()
                        });
                    assert!(is_right, "WRONG: a range");
                }
                Err(error) => count(error),
            }
        }
    }
    errors
}

/// Run by the test below, in a process of its own.
#[test]
#[ignore = "a part of another test"]
fn child_reads_a_damaged_store() {
    let Some(folder) = std::env::var_os(FOLDER_VARIABLE) else {
        return;
    };
    let options = EmbeddedOptions {
        map_bytes: MAP_BYTES,
        ..EmbeddedOptions::default()
    };
    match EmbeddedStore::open(Path::new(&folder), options) {
        Err(error) => println!("OUTCOME refused {error}"),
        Ok(store) => match read_all(&store, &rows()) {
            0 => println!("OUTCOME right"),
            errors => println!("OUTCOME errors {errors}"),
        },
    }
}

#[test]
fn a_flipped_bit_never_makes_wrong_data() {
    let number = |name: &str, default: u64| {
        let text = std::env::var(name).ok();
        text.map_or(default, |text| text.parse().unwrap())
    };
    let flips = number("QUOIN_TEST_ROUNDS", FLIPS);
    let random = SeededRandom::new(number("QUOIN_TEST_SEED", 1));
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let expected = rows();
    let source = expected.iter().map(Ok::<_, std::io::Error>);
    make_store(
        &store,
        MAP_BYTES,
        1,
        source,
        &SeededRandom::new(1),
        &mut |_| {},
    )
    .unwrap();
    let whole = std::fs::read(store.join("data.mdb")).unwrap();
    let mut outcomes = BTreeMap::<String, u64>::new();
    let mut wrong = Vec::new();
    for _ in 0..flips {
        let bit = random.below(whole.len() as u64 * 8) as usize;
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(store.join("data.mdb"), damaged).unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args([
                "child_reads_a_damaged_store",
                "--exact",
                "--ignored",
                "--nocapture",
            ])
            .env(FOLDER_VARIABLE, &store)
            .env("RUST_BACKTRACE", "0")
            .output()
            .unwrap();
        let text = said(&output);
        let outcome = match text.split("OUTCOME ").nth(1) {
            Some(outcome) => outcome.split_whitespace().next().unwrap().to_owned(),
            None => match output.status.signal() {
                Some(signal) => format!("signal {signal}"),
                None => {
                    wrong.push(format!(
                        "byte {} of page {}: {text}",
                        bit / 8 % 4096,
                        bit / 8 / 4096
                    ));
                    "wrong".to_owned()
                }
            },
        };
        *outcomes.entry(outcome).or_default() += 1;
        for name in ["CHECKPOINT", "JOURNAL.0", "JOURNAL.1", "OPEN"] {
            let _ = std::fs::remove_file(store.join(name));
        }
    }
    println!("{flips} bits flipped: {outcomes:?}");
    assert!(wrong.is_empty(), "{}\n{outcomes:?}", wrong.join("\n"));
    assert!(outcomes.contains_key("errors"), "{outcomes:?}");
}
