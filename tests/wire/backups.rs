//! BGSAVE, SAVE, LASTSAVE, and their fields in INFO. See `script` for the notation of
//! conversations.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::script::play;
use crate::server::{Server, Socket, is_on_foundationdb, wait_until};

fn persistence(socket: &mut Socket) -> HashMap<String, String> {
    let text = socket.run("INFO persistence");
    let fields = text.split("\r\n").filter_map(|line| line.split_once(':'));
    fields
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn files(server: &Server) -> Vec<PathBuf> {
    let folder = server.folder().join("data/backups");
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn now_s() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(now.unwrap().as_secs()).unwrap()
}

#[test]
fn replies_are_those_of_redis() {
    if is_on_foundationdb() {
        return;
    }
    play(
        "a: RPUSH l x => :1|
         a: SAVE => +OK|
         a: SAVE now => -ERR wrong number of arguments for 'save' command|
         a: LASTSAVE now => -ERR wrong number of arguments for 'lastsave' command|
         a: LASTSAVE => :1*
         a: BGSAVE now => -ERR syntax error|
         a: BGSAVE SCHEDULE now => -ERR syntax error|
         a: BGSAVE sChedule => +Background saving started|",
    );
}

#[test]
fn rewriting_the_append_only_file_makes_a_backup() {
    if is_on_foundationdb() {
        return;
    }
    play(
        "a: BGREWRITEAOF now => -ERR wrong number of arguments for 'bgrewriteaof' command|
         a: MULTI => +OK|
         a: BGREWRITEAOF => +QUEUED|
         a: EXEC => *1|+Background append only file rewriting scheduled|",
    );
    let server = Server::start();
    let mut socket = server.connect();
    let started = "+Background append only file rewriting started\r\n";
    assert_eq!(socket.run("BGREWRITEAOF"), started);
    wait_until("the backup is made", || {
        persistence(&mut socket)["rdb_saves"] == "1"
    });
}

#[test]
fn replicas_are_told_what_to_use_instead() {
    let server = Server::start();
    let mut socket = server.connect();
    for line in ["SYNC", "PSYNC ? -1", "REPLCONF listening-port 7000"] {
        let reply = socket.run(line);
        assert!(
            reply.starts_with("-ERR ") && reply.contains("quoin export"),
            "{reply}"
        );
    }
}

#[test]
fn within_a_transaction_saving_is_refused_and_saving_in_the_background_scheduled() {
    if is_on_foundationdb() {
        return;
    }
    play(
        "a: MULTI => +OK|
         a: SAVE => -ERR Command not allowed inside a transaction|
         a: EXEC => -EXECABORT Transaction discarded because of previous errors.|
         a: MULTI => +OK|
         a: RPUSH l x => +QUEUED|
         a: BGSAVE => +QUEUED|
         a: BGSAVE SCHEDULE => +QUEUED|
         a: EXEC => *3|:1|+Background saving scheduled|+Background saving scheduled|",
    );
}

#[test]
fn a_scheduled_backup_is_made_soon() {
    if is_on_foundationdb() {
        return;
    }
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("MULTI");
    socket.run("BGSAVE");
    socket.run("EXEC");
    wait_until("the backup is there", || {
        persistence(&mut socket)["rdb_saves"] == "1"
    });
    assert_eq!(files(&server).len(), 1);
}

#[test]
fn info_tells_of_the_last_backup_and_a_restarted_server_knows_it() {
    if is_on_foundationdb() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(folder.path(), &[]).unwrap();
    let mut socket = server.connect();
    let before = persistence(&mut socket);
    assert_eq!(before["rdb_last_bgsave_time_sec"], "-1");
    assert_eq!(before["backup_last_file"], "");
    socket.run("RPUSH list a");
    assert_ne!(persistence(&mut socket)["rdb_changes_since_last_save"], "0");
    let begun = now_s();
    assert_eq!(socket.run("SAVE"), "+OK\r\n");
    let after = persistence(&mut socket);
    for (name, value) in [
        ("rdb_changes_since_last_save", "0"),
        ("rdb_bgsave_in_progress", "0"),
        ("rdb_last_bgsave_status", "ok"),
        ("rdb_last_bgsave_time_sec", "0"),
        ("rdb_saves", "1"),
        ("backup_failures", "0"),
        ("backup_last_error", ""),
    ] {
        assert_eq!(after[name], value, "{name}");
    }
    let saved = after["rdb_last_save_time"].parse::<i64>().unwrap();
    assert!(saved >= begun && saved <= now_s());
    assert_eq!(socket.run("LASTSAVE"), format!(":{saved}\r\n"));
    let [file] = files(&server).try_into().unwrap();
    assert_eq!(
        after["backup_last_file"],
        file.file_name().unwrap().to_str().unwrap()
    );
    let bytes = file.metadata().unwrap().len();
    assert_eq!(after["backup_last_bytes"], bytes.to_string());
    drop(server);
    let server = Server::start_in(folder.path(), &[]).unwrap();
    let mut socket = server.connect();
    assert_eq!(socket.run("LASTSAVE"), format!(":{saved}\r\n"));
    let known = persistence(&mut socket);
    assert_eq!(known["backup_last_commit"], after["backup_last_commit"]);
}

#[test]
fn so_many_are_kept_as_the_setting_says() {
    if is_on_foundationdb() {
        return;
    }
    let server = Server::start_with(&["--backups-keep", "2"]);
    let mut socket = server.connect();
    let mut save = || {
        socket.run("RPUSH list a");
        assert_eq!(socket.run("SAVE"), "+OK\r\n");
    };
    for _ in 0..4 {
        save();
    }
    let before = files(&server);
    assert_eq!(before.len(), 2);
    server.connect().run("CONFIG SET backups-keep 0");
    save();
    let after = files(&server);
    assert_eq!(after[..2], before);
    assert_eq!(after.len(), 3);
}

#[test]
fn a_backup_that_fails_is_told_and_clients_go_on() {
    if is_on_foundationdb() {
        return;
    }
    let server = Server::start();
    let mut socket = server.connect();
    std::fs::write(server.folder().join("data/backups"), "in the way").unwrap();
    let error = socket.run("SAVE");
    assert!(error.starts_with("-ERR cannot make the folder"), "{error}");
    let told = persistence(&mut socket);
    assert_eq!(told["rdb_last_bgsave_status"], "err");
    assert_eq!(told["backup_failures"], "1");
    assert!(told["backup_last_error"].starts_with("cannot make the folder"));
    assert_eq!(socket.run("RPUSH list a"), ":1\r\n");
}

#[test]
fn other_clients_are_served_while_one_saves() {
    if is_on_foundationdb() {
        return;
    }
    let server = Server::start();
    let mut socket = server.connect();
    let value = "x".repeat(100_000);
    for _ in 0..100 {
        socket.command(&["RPUSH", "list", &value]);
    }
    let mut saver = server.connect();
    saver.send("SAVE\r\n");
    let mut refused = false;
    loop {
        // Commits slow it down, because it leaves them half of the time.
        assert!(socket.run("RPUSH other a").starts_with(':'));
        let running = persistence(&mut socket)["rdb_bgsave_in_progress"] == "1";
        if !running && persistence(&mut socket)["rdb_saves"] != "0" {
            break;
        }
        if running && !refused {
            let reply = socket.run("BGSAVE");
            refused = reply == "-ERR Background save already in progress\r\n";
            assert!(
                refused || reply == "+Background saving started\r\n",
                "{reply}"
            );
        }
    }
    assert_eq!(saver.reply(), "+OK\r\n");
}

#[test]
fn on_foundationdb_the_manual_is_named() {
    if !is_on_foundationdb() {
        return;
    }
    let server = Server::start();
    let mut socket = server.connect();
    for line in ["SAVE", "BGSAVE", "BGREWRITEAOF"] {
        assert!(
            socket.run(line).contains("docs/operate/backup.md"),
            "{line}"
        );
    }
    // There has never been a backup, so it is the start time of the server.
    let last = socket.run("LASTSAVE");
    let started_s: i64 = last.trim_start_matches(':').trim_end().parse().unwrap();
    assert!((0..3600).contains(&(now_s() - started_s)), "{last}");
}
