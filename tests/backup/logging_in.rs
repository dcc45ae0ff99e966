//! Tools log in as users, as the documents show it.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use crate::doctor::{expect_healthy, healthy};
use crate::folders::{bad, good, quoin, restore};
use crate::server::{Server, wait_until};

const SECURITY: &str = include_str!("../../docs/operate/security.md");
const BACKUP: &str = include_str!("../../docs/operate/backup.md");

/// The first block of a document in a language that has this text.
fn block<'d>(document: &'d str, language: &str, text: &str) -> &'d str {
    let fence = format!("```{language}\n");
    let mut blocks = document.split(fence.as_str()).skip(1);
    let block = blocks.find_map(|rest| rest.split("```").next().filter(|one| one.contains(text)));
    block.unwrap()
}

/// A server with the users of docs/operate/security.md, by its settings file.
fn with_users(folder: &Path) -> Server {
    let users = block(SECURITY, "toml", "default off");
    let socket = folder.join("quoin.sock");
    // With a Unix socket, port 0 would be none.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let text = format!(
        "port = {port}\nunixsocket = \"{}\"\n{users}",
        socket.display()
    );
    std::fs::write(folder.join("quoin.toml"), text).unwrap();
    let port = port.to_string();
    Server::start_in(folder, &["--config", "quoin.toml", "--port", &port]).unwrap()
}

#[test]
fn the_cron_of_the_documents_works_with_the_users_of_the_documents() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let server = with_users(folder);
    let mut socket = server.connect();
    assert!(socket.run("PING").contains("NOAUTH"));
    socket.run("AUTH admin longest-secret");
    assert_eq!(socket.run("RPUSH list a b"), ":2\r\n");
    std::fs::write(folder.join("password"), "tools-secret\n").unwrap();
    let line = block(BACKUP, "cron", "quoin backup");
    let line = line
        .trim()
        .replace("/etc/quoin/quoin.toml", "quoin.toml --data-dir data")
        .replace("/etc/quoin/tools.password", "password")
        .replace("/mnt/backups", "aside");
    let words: Vec<&str> = line
        .split(' ')
        .skip_while(|word| *word != "backup")
        .collect();
    let said = good(folder, &words);
    let (path, _) = said.split_once(": ").unwrap();
    assert!(path.starts_with("aside/quoin-"), "{said}");
    restore(folder, &folder.join(path), "restored", &[]);

    // The doctor too, with every way to log in.
    let named = ["--data-dir", "data", "--user", "tools"];
    let by_file = ["--password-file", "password"];
    let by_flag = ["--password", "tools-secret"];
    for how in [by_file, by_flag] {
        healthy(folder, &[&named[..], &how].concat());
    }
    let by_variables = Command::new(env!("CARGO_BIN_EXE_quoin"))
        .args(["doctor", "--data-dir", "data"])
        .env("QUOIN_CLIENT_USER", "tools")
        .env("QUOIN_CLIENT_PASSWORD_FILE", folder.join("password"))
        .current_dir(folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&by_variables.stdout);
    expect_healthy(by_variables.status.code().unwrap(), &said);
    let without_login = words.iter().copied();
    let without_login: Vec<&str> = without_login.take_while(|word| *word != "--user").collect();
    let complaint = bad(folder, &without_login);
    assert!(
        complaint.contains("NOAUTH") && complaint.contains("--user"),
        "{complaint}"
    );
}

#[test]
fn export_and_import_log_in_at_a_unix_socket() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [from, to] = [&folders[0], &folders[1]].map(|folder| folder.path());
    let (source, target) = (with_users(from), with_users(to));
    let address = |folder: &Path| format!("unix://{}", folder.join("quoin.sock").display());
    let mut socket = source.connect();
    socket.run("AUTH admin longest-secret");
    socket.run("RPUSH list a b");
    let (from_address, to_address) = (address(from), address(to));
    std::fs::write(from.join("password"), "longest-secret\n").unwrap();
    let login = ["--user", "admin", "--password-file", "password"];
    let export = ["export", "--from", &from_address, "--to", "dump.rdb"];
    good(from, &[&export[..], &login].concat());
    assert!(from.join("dump.rdb").exists());
    let import = ["import", "--from", &from_address, "--to", &to_address];
    let refused = quoin(from, &import);
    let complaint = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(complaint.contains("NOAUTH"), "{complaint}");
    let logins = [
        ["--from-user", "admin", "--from-password-file", "password"],
        ["--to-user", "admin", "--to-password", "longest-secret"],
    ];
    good(from, &[&import[..], &logins[0], &logins[1]].concat());
    let mut socket = target.connect();
    socket.run("AUTH admin longest-secret");
    wait_until("it is there", || socket.run("LLEN list") == ":2\r\n");
}
