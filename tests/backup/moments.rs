//! Restoring to a moment between backups, by the archive of the journal.

use std::path::Path;
use std::time::Duration;

use crate::folders::{backup, bad, field, fill, last_commit, restore, rows, start_on, stop};
use crate::server::{Server, Socket, wait_until};

const ARCHIVE: &str = "archive";

fn start(folder: &Path, more: &[&str]) -> Server {
    let flags = ["--journal-archive-dir", ARCHIVE];
    Server::start_in(folder, &[&flags, more].concat()).unwrap()
}

/// Waits until the archive has everything committed so far.
fn wait_for_archive(socket: &mut Socket) {
    let last = last_commit(socket);
    wait_until("all is archived", || {
        let archived: u64 = field(socket, "journal_archive_last_commit")
            .parse()
            .unwrap();
        archived >= last
    });
}

/// The words of a restore to a limit.
fn with_archive<'w>(limit: &[&'w str]) -> Vec<&'w str> {
    [&["--journal-archive", ARCHIVE], limit].concat()
}

/// The state after each commit of the only client: the list as it was then.
#[derive(Default)]
struct Model {
    list: Vec<String>,
    by_commit: Vec<(u64, Vec<String>, String)>,
}

impl Model {
    /// Pushes or pops, and remembers the list and the time by the commit.
    fn step(&mut self, socket: &mut Socket, number: usize) {
        if number % 3 == 2 {
            socket.run("LPOP list");
            self.list.remove(0);
        } else {
            socket.run(&format!("RPUSH list {number}"));
            self.list.push(number.to_string());
        }
        let now = time(socket);
        self.by_commit
            .push((last_commit(socket), self.list.clone(), now));
    }
}

/// The server's time, as `--until-time` takes it.
fn time(socket: &mut Socket) -> String {
    let reply = socket.run("TIME");
    let parts: Vec<&str> = reply.split("\r\n").collect();
    let (seconds, micros): (i64, i64) = (parts[2].parse().unwrap(), parts[4].parse().unwrap());
    let days = seconds.div_euclid(86_400);
    let of_day = seconds.rem_euclid(86_400);
    // Days since 0000-03-01, in eras of 400 years (Howard Hinnant's civil_from_days).
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_of_year = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_of_year + 2) / 5 + 1;
    let month = (month_of_year + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{micros:06}Z",
        of_day / 3_600,
        of_day / 60 % 60,
        of_day % 60
    )
}

fn list(folder: &Path, data_dir: &str) -> Vec<String> {
    let server = start_on(folder, data_dir).unwrap();
    let reply = server.connect().run("LRANGE list 0 -1");
    let mut lines = reply.split("\r\n").skip(1);
    let mut items = Vec::new();
    while lines.next().is_some_and(|length| length.starts_with('$')) {
        items.push(lines.next().unwrap().to_owned());
    }
    items
}

#[test]
fn a_restore_to_a_commit_or_a_time_is_the_model_of_then() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let server = start(folder, &[]);
    let mut socket = server.connect();
    let mut model = Model::default();
    for number in 0..10 {
        model.step(&mut socket, number);
    }
    let backup = backup(&server);
    let in_backup = last_commit(&mut socket);
    for number in 10..40 {
        model.step(&mut socket, number);
        // So that commits have different times, and are in several files of the journal.
        std::thread::sleep(Duration::from_millis(if number % 10 == 0 {
            1_100
        } else {
            3
        }));
    }
    wait_for_archive(&mut socket);
    let last = last_commit(&mut socket);
    stop(server);
    for at in [9, 10, 17, 25, 39] {
        let (commit, expected, now) = &model.by_commit[at];
        let to = format!("commit-{at}");
        let commit = commit.to_string();
        let said = restore(
            folder,
            &backup,
            &to,
            &with_archive(&["--until-commit", &commit]),
        );
        assert!(said.contains(&format!("commit {commit}")), "{said}");
        assert_eq!(list(folder, &to), *expected, "commit {commit}");
        if at > 9 {
            let to = format!("time-{at}");
            restore(folder, &backup, &to, &with_archive(&["--until-time", now]));
            assert_eq!(list(folder, &to), *expected, "{now}");
        }
    }
    restore(folder, &backup, "end", &with_archive(&[]));
    assert!(rows(&folder.join("end")) == rows(&folder.join("data")));

    let from = backup.to_str().unwrap();
    let words = |limit: [&'static str; 1], value: &str| {
        let value = value.to_owned();
        let words = [
            "restore",
            "--from",
            from,
            "--data-dir",
            "none",
            "--journal-archive",
            ARCHIVE,
        ];
        let words: Vec<String> = words
            .iter()
            .chain(&limit)
            .map(|word| (*word).to_owned())
            .collect();
        [words, vec![value]].concat()
    };
    for (limit, value, expected) in [
        (
            ["--until-commit"],
            (in_backup - 1).to_string(),
            "use an earlier one",
        ),
        (
            ["--until-commit"],
            (last + 100).to_string(),
            "the archive ends with commit",
        ),
        (
            ["--until-time"],
            "2001-01-01T00:00:00Z".to_owned(),
            "use an earlier one",
        ),
    ] {
        let words = words(limit, &value);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let complaint = bad(folder, &words);
        assert!(complaint.contains(expected), "{complaint}");
        assert!(!folder.join("none").exists());
    }
}

#[test]
fn kills_and_restarts_leave_no_gap_in_the_archive() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let server = start(folder, &["--fsync", "everysec"]);
    fill(&mut server.connect(), "before");
    let backup = backup(&server);
    stop(server);
    for round in 0..4 {
        let mut server = start(folder, &["--fsync", "everysec"]);
        fill(&mut server.connect(), &format!("round{round}"));
        if round % 2 == 0 {
            server.signal("KILL");
            server.wait();
        } else {
            stop(server);
        }
    }
    let server = start(folder, &[]);
    wait_for_archive(&mut server.connect());
    stop(server);
    restore(folder, &backup, "restored", &with_archive(&[]));
    assert!(rows(&folder.join("restored")) == rows(&folder.join("data")));
}

#[test]
fn a_gap_in_the_archive_is_refused_and_says_how_far_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let server = start(folder, &[]);
    let mut socket = server.connect();
    socket.run("RPUSH list a");
    let backup = backup(&server);
    socket.run("RPUSH list b");
    wait_for_archive(&mut socket);
    let reached = last_commit(&mut socket);
    stop(server);
    // Commits that are in no archive.
    let server = Server::start_in(folder, &[]).unwrap();
    server.connect().run("RPUSH list c");
    stop(server);
    let server = start(folder, &[]);
    let mut socket = server.connect();
    assert!(
        server.log().contains("make a backup now"),
        "{}",
        server.log()
    );
    socket.run("RPUSH list d");
    wait_for_archive(&mut socket);
    stop(server);
    let from = backup.to_str().unwrap();
    let words = ["restore", "--from", from, "--data-dir", "none"];
    let complaint = bad(folder, &[&words[..], &with_archive(&[])].concat());
    assert!(complaint.contains("is not in the archive"), "{complaint}");
    assert!(
        complaint.contains(&format!("up to commit {reached}")),
        "{complaint}"
    );
    assert!(!folder.join("none").exists());
    let reached = reached.to_string();
    restore(
        folder,
        &backup,
        "part",
        &with_archive(&["--until-commit", &reached]),
    );
    assert_eq!(list(folder, "part"), ["a", "b"]);
}

#[test]
fn an_archive_that_cannot_be_written_is_told_and_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let server = start(folder, &[]);
    let mut socket = server.connect();
    let backup = backup(&server);
    socket.run("RPUSH list a");
    wait_for_archive(&mut socket);
    let (there, aside) = (folder.join(ARCHIVE), folder.join("aside"));
    std::fs::rename(&there, &aside).unwrap();
    for number in 0..3 {
        assert!(socket.run(&format!("RPUSH list {number}")).starts_with(':'));
        std::thread::sleep(Duration::from_millis(700));
    }
    wait_until("it is told", || {
        server.log().contains("cannot archive commits")
    });
    assert_ne!(field(&mut socket, "journal_archive_error"), "");
    std::fs::rename(&aside, &there).unwrap();
    wait_for_archive(&mut socket);
    assert_eq!(field(&mut socket, "journal_archive_error"), "");
    stop(server);
    restore(folder, &backup, "restored", &with_archive(&[]));
    assert!(rows(&folder.join("restored")) == rows(&folder.join("data")));
}

#[test]
fn a_store_that_was_put_back_does_not_go_on_in_its_archive() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let server = start(folder, &[]);
    server.connect().run("RPUSH list a");
    stop(server);
    for name in ["data.mdb", "QUOIN"] {
        std::fs::copy(folder.join("data").join(name), folder.join(name)).unwrap();
    }
    let server = start(folder, &[]);
    server.connect().run("RPUSH list b");
    stop(server);
    for name in ["data.mdb", "QUOIN"] {
        std::fs::copy(folder.join(name), folder.join("data").join(name)).unwrap();
    }
    let flags = ["--journal-archive-dir", ARCHIVE];
    let log = Server::start_in(folder, &flags).err().unwrap();
    assert!(log.contains("put back to an earlier state"), "{log}");
}
