//! Threads that the system refuses.

use crate::server::{Server, as_another_user, is_on_foundationdb};

/// A server whose process may not get further threads until that is changed. `None` if this machine
/// does not allow such a test, because the superuser's threads are not limited.
fn server_without_threads() -> Option<Server> {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("quoin.toml");
    std::fs::write(&config, "").unwrap();
    let users = folder.path().join("users.acl");
    std::fs::write(&users, "user default on nopass ~* &* +@all\n").unwrap();
    let flags = [
        "--config",
        config.to_str().unwrap(),
        "--aclfile",
        users.to_str().unwrap(),
    ];
    let server = Server::start_as_another_user(folder, &flags)?;
    limit_threads(&server, "1");
    Some(server)
}

fn limit_threads(server: &Server, max: &str) {
    // By the same user: the superuser of a container may not.
    let status = as_another_user()
        .arg("prlimit")
        .arg(format!("--pid={}", server.process_id()))
        .arg(format!("--nproc={max}:"))
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn what_needs_a_thread_that_is_refused_fails_and_nothing_else_does() {
    if is_on_foundationdb() {
        return;
    }
    let Some(server) = server_without_threads() else {
        eprintln!("not as the superuser, or without setpriv");
        return;
    };
    let mut socket = server.connect();
    for _ in 0..2 {
        for line in ["BGSAVE", "SAVE"] {
            let reply = socket.run(line);
            assert!(reply.starts_with("-ERR cannot start a thread"), "{reply}");
        }
        for line in ["ACL SAVE", "ACL LOAD"] {
            let reply = socket.run(line);
            assert!(reply.starts_with("-ERR cannot use a thread"), "{reply}");
        }
        let reply = socket.run("CONFIG REWRITE");
        assert!(reply.starts_with("-ERR Rewriting config file: "), "{reply}");
        let reply = socket.run("CONFIG SET tls-cert-file x.crt");
        assert!(reply.starts_with("-ERR CONFIG SET failed"), "{reply}");
        let reply = socket.run("RPUSH queue a");
        assert!(reply.starts_with(':'), "{reply}");
        let reply = socket.run("MIGRATE localhost 1 queue 0 1000");
        assert!(reply.starts_with("-IOERR "), "{reply}");
    }
    assert!(
        socket
            .run("INFO persistence")
            .contains("rdb_last_bgsave_status:err")
    );
    assert!(
        socket
            .run("INFO clients")
            .contains("connected_clients:1\r\n")
    );
    server.signal("HUP");
    assert_eq!(socket.run("PING"), "+PONG\r\n");
    limit_threads(&server, "1000");
    for line in ["SAVE", "ACL SAVE", "ACL LOAD", "CONFIG REWRITE"] {
        assert_eq!(socket.run(line), "+OK\r\n", "{line}");
    }
    assert!(
        socket
            .run("INFO persistence")
            .contains("rdb_last_bgsave_status:ok")
    );
    assert!(!server.log().contains("panicked"), "{}", server.log());
}
