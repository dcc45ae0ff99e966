//! `quoin backup`.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::folders::{backup, backup_of, bad, field, fill, good, restore, rows, start_on, stop};
use crate::server::{Server, wait_until};

#[test]
fn a_backup_of_a_running_server_has_every_row() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let server = Server::start_in(folder, &[]).unwrap();
    fill(&mut server.connect(), "");
    let backup = backup(&server);
    restore(folder, &backup, "restored", &[]);
    stop(server);
    assert!(rows(&folder.join("restored")) == rows(&folder.join("data")));
    let server = start_on(folder, "restored").unwrap();
    assert_eq!(server.connect().run("LLEN list"), ":22\r\n");
}

#[test]
fn a_backup_of_a_stopped_folder_has_every_row() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let server = Server::start_in(folder, &[]).unwrap();
    fill(&mut server.connect(), "");
    stop(server);
    let said = good(folder, &["backup", "--data-dir", "data"]);
    let backup = folder.join(said.split_once(": ").unwrap().0);
    assert!(backup.starts_with(folder.join("data/backups")));
    restore(folder, &backup, "restored", &[]);
    assert!(rows(&folder.join("restored")) == rows(&folder.join("data")));
    let aside = folder.join("aside");
    let to = ["backup", "--data-dir", "data", "--to", "aside"];
    assert!(good(folder, &to).starts_with("aside/quoin-"));
    assert_eq!(std::fs::read_dir(aside).unwrap().count(), 1);
}

/// Two lists grow together, by one element each in one transaction. Two counters say how many
/// elements were acknowledged, and how many were sent.
#[test]
fn under_load_a_backup_is_one_moment_with_all_that_was_acknowledged_before() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let server = Server::start_in(folder, &["--fsync", "everysec"]).unwrap();
    let padding = "x".repeat(2_000);
    let mut socket = server.connect();
    for number in 0..2_000 {
        socket.command(&["RPUSH", "ballast", &format!("{number}{padding}")]);
    }
    let (acknowledged, sent) = (AtomicU64::new(0), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    let taken = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut socket = server.connect();
            for number in 1.. {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                sent.store(number, Ordering::SeqCst);
                socket.send(format!(
                    "MULTI\r\nRPUSH one {number}\r\nRPUSH two {number}\r\nLPOP ballast\r\n\
                     RPUSH ballast {number}{padding}\r\nEXEC\r\n"
                ));
                for _ in 0..6 {
                    assert!(!socket.reply().starts_with('-'));
                }
                acknowledged.store(number, Ordering::SeqCst);
            }
        });
        wait_until("there is load", || acknowledged.load(Ordering::SeqCst) > 50);
        let mut taken = Vec::new();
        for _ in 0..3 {
            let before = acknowledged.load(Ordering::SeqCst);
            let path = backup(&server);
            taken.push((path, before, sent.load(Ordering::SeqCst)));
        }
        is_over.store(true, Ordering::SeqCst);
        taken
    });
    drop(server);
    for (at, (backup, least, most)) in taken.into_iter().enumerate() {
        let to = format!("restored-{at}");
        restore(folder, &backup, &to, &[]);
        let server = start_on(folder, &to).unwrap();
        let mut socket = server.connect();
        let one = socket.run("LRANGE one 0 -1");
        assert_eq!(one, socket.run("LRANGE two 0 -1"));
        let length = socket.run("LLEN one");
        let length: u64 = length[1..].trim_end().parse().unwrap();
        assert!((least..=most).contains(&length), "{least} {length} {most}");
        let last = socket.run("LINDEX one -1");
        assert!(last.ends_with(&format!("\r\n{length}\r\n")), "{last}");
        assert_eq!(socket.run("LLEN ballast"), ":2000\r\n");
        drop(server);
        good(folder, &["doctor", "--deep", "--data-dir", &to]);
    }
}

#[test]
fn a_kill_amid_a_backup_leaves_the_older_one() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut server = Server::start_in(folder, &[]).unwrap();
    let mut socket = server.connect();
    fill(&mut socket, "");
    let older = backup(&server);
    let before = std::fs::read(&older).unwrap();
    let value = "x".repeat(1_000_000);
    for _ in 0..60 {
        socket.command(&["RPUSH", "large", &value]);
    }
    assert_eq!(socket.run("BGSAVE"), "+Background saving started\r\n");
    let backups = folder.join("data/backups");
    let unfinished = || {
        names(&backups)
            .into_iter()
            .find(|name| name.ends_with(".part"))
    };
    wait_until("a part is written", || unfinished().is_some());
    server.signal("KILL");
    server.wait();
    let left = names(&backups);
    let finished = left.iter().filter(|name| name.ends_with(".backup")).count();
    // If the kill came too late, there are two complete ones.
    assert!(unfinished().is_some() || finished == 2, "{left:?}");
    assert_eq!(std::fs::read(&older).unwrap(), before);
    restore(folder, &older, "restored", &[]);
    let server = Server::start_in(folder, &[]).unwrap();
    assert_eq!(unfinished(), None);
    assert_eq!(server.connect().run("LLEN large"), ":60\r\n");
    // The next one is complete.
    let newer = backup(&server);
    restore(folder, &newer, "restored-newer", &[]);
    stop(server);
    assert!(rows(&folder.join("restored-newer")) == rows(&folder.join("data")));
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn a_copy_goes_to_another_folder_and_can_be_restored() {
    let server = Server::start_with(&["--requirepass", "secret"]);
    let mut socket = server.connect();
    socket.run("AUTH secret");
    fill(&mut socket, "");
    let mut words = backup_of(&server);
    words.extend(["--requirepass", "secret", "--to", "aside"].map(str::to_owned));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = good(server.folder(), &words);
    let (path, _) = said.split_once(": ").unwrap();
    assert!(path.starts_with("aside/quoin-"), "{said}");
    let copy = server.folder().join(path);
    assert_eq!(field(&mut socket, "rdb_saves"), "1");
    restore(server.folder(), &copy, "restored", &[]);
    let own = server
        .folder()
        .join("data/backups")
        .join(copy.file_name().unwrap());
    assert_eq!(std::fs::read(own).unwrap(), std::fs::read(copy).unwrap());
}

#[test]
fn the_wrong_server_and_no_server_are_told() {
    let server = Server::start();
    let other = Server::start();
    let port = other.address().port().to_string();
    let folder = server.folder();
    let complaint = bad(folder, &["backup", "--data-dir", "data", "--port", &port]);
    assert!(complaint.contains("does not have data open"), "{complaint}");
    let complaint = bad(folder, &["backup", "--data-dir", "data", "--port", "1"]);
    assert!(
        complaint.contains("none answers at redis://127.0.0.1:1"),
        "{complaint}"
    );
    let complaint = bad(folder, &["backup", "--data-dir", "nothing"]);
    assert!(
        complaint.contains("there is no store in nothing"),
        "{complaint}"
    );
    assert!(!folder.join("nothing").exists());
}

#[test]
fn a_wrong_password_is_told() {
    let server = Server::start_with(&["--requirepass", "secret"]);
    let words = backup_of(&server);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let complaint = bad(server.folder(), &words);
    assert!(complaint.contains("NOAUTH"), "{complaint}");
}

#[test]
fn a_server_that_stops_gives_up_its_backup_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let server = Server::start_in(folder, &[]).unwrap();
    let mut socket = server.connect();
    let value = "x".repeat(1_000_000);
    for _ in 0..60 {
        socket.command(&["RPUSH", "large", &value]);
    }
    assert_eq!(socket.run("BGSAVE"), "+Background saving started\r\n");
    let begun = std::time::Instant::now();
    stop(server);
    assert!(begun.elapsed() < Duration::from_secs(8));
    let left = names(&folder.join("data/backups"));
    assert!(
        left.iter().all(|name| name.ends_with(".backup")),
        "{left:?}"
    );
}

#[test]
fn old_copies_of_this_store_go_and_those_of_another_stay() {
    let server = Server::start_with(&["--backups-keep", "2"]);
    let other = Server::start_with(&[]);
    let count = || names(&server.folder().join("aside")).len();
    let run = |words: Vec<String>, more: &[&str]| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        good(server.folder(), &[&words, more].concat());
    };
    let port = other.address().port().to_string();
    let data = other.folder().join("data").to_str().unwrap().to_owned();
    let of_other = ["backup", "--data-dir", &data, "--port", &port].map(str::to_owned);
    run(of_other.to_vec(), &["--to", "aside"]);
    for (keep, left) in [
        (None, 2),
        (None, 3),
        (None, 3),
        (Some("3"), 4),
        (Some("0"), 5),
    ] {
        let mut more = vec!["--to", "aside", "--backups-keep", "2"];
        more.extend(keep.iter().flat_map(|keep| ["--keep", keep]));
        run(backup_of(&server), &more);
        assert_eq!(count(), left);
    }
    let own = server.folder().join("data/backups");
    assert_eq!(names(&own).len(), 2);
    stop(server);
}

#[test]
fn old_backups_of_a_stopped_store_go() {
    let server = Server::start_with(&[]);
    let folder = server.folder().to_owned();
    let kept = tempfile::tempdir().unwrap();
    let data = kept.path().join("data");
    server.connect().run("RPUSH list a");
    let backup = backup(&server);
    let to = data.to_str().unwrap();
    restore(&folder, &backup, to, &[]);
    for left in [1, 2, 2] {
        good(
            &folder,
            &["backup", "--data-dir", to, "--backups-keep", "2"],
        );
        assert_eq!(names(&data.join("backups")).len(), left);
    }
}
