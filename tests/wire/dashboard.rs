//! The dashboard over HTTP: who gets in, what forms need, and what a page costs.
//! tests/frameworks/dashboard.rs uses it in a browser.

mod browser;
mod clients;
mod task_queues;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use browser::{Browser, server_with};

use crate::authority::Authority;
use crate::server::{Server, Socket, is_on_foundationdb, wait_until};

#[test]
fn the_most_active_queues_are_on_the_overview_and_their_figures_on_their_pages() {
    let server = server_with(&[]);
    let mut browser = Browser::of(&server);
    assert!(!browser.get("/").body.contains("Most active queues"));
    let mut socket = server.connect();
    socket.run("RPUSH mail a b c");
    socket.run("LPOP mail");
    let overview = browser.get("/").body;
    assert!(overview.contains("Most active queues"), "{overview}");
    assert!(overview.contains("/queue?db=0&amp;key=mail"), "{overview}");
    let page = browser.get("/queue?db=0&key=mail").body;
    assert!(
        page.contains("3 counted") && page.contains("1 counted"),
        "{page}"
    );
}

#[test]
fn without_a_password_a_browser_of_this_machine_is_in() {
    let server = server_with(&[]);
    let mut browser = Browser::of(&server);
    let page = browser.get("/");
    assert_eq!(page.status, 200);
    let cookie = page.header("set-cookie").unwrap();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert!(!page.body.contains(" style=\"") && !page.body.contains(" onclick"));
    // The session continues.
    assert_eq!(browser.get("/queues").header("set-cookie"), None);
    let clients = server.connect().run("CLIENT LIST");
    assert_eq!(
        clients.matches("name=quoin-dashboard").count(),
        1,
        "{clients}"
    );
}

#[test]
fn without_a_password_a_name_that_leads_here_is_not_enough() {
    let server = server_with(&[]);
    let mut browser = Browser::of(&server);
    browser.host = format!("evil.example:{}", browser.address.port());
    let page = browser.get("/queues?db=3");
    assert_eq!(page.status, 303);
    assert_eq!(
        page.header("location"),
        Some("/login?next=%2Fqueues%3Fdb%3D3")
    );
    assert_eq!(page.header("set-cookie"), None);
    assert_eq!(browser.get("/login").status, 200);
    browser.host = "localhost".to_owned();
    assert_eq!(browser.get("/queues").status, 200);
}

#[test]
fn a_password_is_asked_for_and_leads_back() {
    let server = server_with(&["--requirepass", "secret"]);
    let mut browser = Browser::of(&server);
    assert_eq!(browser.get("/").header("location"), Some("/login?next=%2F"));
    let page = browser.log_in("", "secret");
    assert_eq!(
        (page.status, page.header("location")),
        (303, Some("/queues"))
    );
    let page = browser.get("/queues");
    assert_eq!(page.status, 200);
    // Logging out ends the connection too.
    let token = page.token();
    let page = browser.post("/logout", &format!("token={token}"));
    assert_eq!(page.header("location"), Some("/login"));
    assert_eq!(browser.cookie, None);
    let mut socket = server.connect();
    socket.run("AUTH secret");
    wait_until("the session's connection has ended", || {
        !socket.run("CLIENT LIST").contains("quoin-dashboard")
    });
}

#[test]
fn wrong_passwords_are_refused_and_slowed_down() {
    let server = server_with(&["--requirepass", "secret"]);
    let mut browser = Browser::of(&server);
    let mut refused = 0;
    loop {
        let page = browser.log_in("default", "wrong");
        match page.status {
            401 => refused += 1,
            status => {
                assert_eq!(status, 429);
                break;
            }
        }
        assert!(
            page.body.contains("Wrong user or password"),
            "{}",
            page.body
        );
        assert!(!page.body.contains("wrong\""), "a password is repeated");
        assert_eq!(page.header("set-cookie"), None);
        // A minute may end meanwhile.
        assert!(refused <= 10);
    }
    assert!(refused >= 5);
    let mut socket = server.connect();
    socket.run("AUTH secret");
    let counted = format!("acl_access_denied_auth:{refused}\r\n");
    assert!(socket.run("INFO stats").contains(&counted));
}

#[test]
fn a_form_needs_the_token_of_its_session() {
    let server = server_with(&[]);
    let mut socket = server.connect();
    socket.run("RPUSH jobs a");
    let mut browser = Browser::of(&server);
    let token = browser.get("/").token();
    let path = "/queue?key=jobs";
    let others = Browser::of(&server).get("/").token();
    for form in [
        "action=delete",
        "action=delete&token=",
        &format!("action=delete&token={others}"),
    ] {
        assert_eq!(browser.post(path, form).status, 403, "{form}");
    }
    let form = format!("action=delete&token={token}");
    for header in [
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
    ] {
        assert_eq!(
            browser.ask("POST", path, &form, header).status,
            403,
            "{header}"
        );
    }
    // A session that has ended must not act in a new one.
    let cookie = browser.cookie.take();
    assert_eq!(browser.post(path, &form).status, 303);
    assert_eq!(socket.run("EXISTS jobs"), ":1\r\n");
    browser.cookie = cookie;
    let own = format!(
        "Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\n",
        browser.host
    );
    let page = browser.ask("POST", path, &form, &own);
    assert_eq!(page.header("location"), Some("/queues?db=0"));
    assert_eq!(socket.run("EXISTS jobs"), ":0\r\n");
}

#[test]
fn users_see_and_do_what_their_rights_allow() {
    let server = server_with(&[]);
    let mut socket = server.connect();
    socket.run("TASK.ADD jobs 1 payload ID one");
    socket.run("RPUSH secret-list a");
    socket.command(&[
        "ACL", "SETUSER", "reader", "on", ">r", "~jobs", "+@read", "+scan", "+select",
    ]);
    socket.command(&["ACL", "SETUSER", "default", "resetpass", ">p"]);
    let mut reader = Browser::of(&server);
    assert_eq!(reader.log_in("reader", "r").status, 303);
    let page = reader.get("/queue?key=jobs");
    assert!(
        page.body.contains("payload") || page.body.contains(">one<"),
        "{}",
        page.body
    );
    for button in ["Pause", "Purge", "Remove", "Delete"] {
        assert!(!page.body.contains(&format!(">{button}<")), "{button}");
    }
    // The server refuses what no button offers.
    let form = format!("action=pause&token={}", page.token());
    assert_eq!(reader.post("/queue?key=jobs", &form).status, 303);
    let page = reader.get("/queue?key=jobs");
    assert!(page.body.contains("NOPERM"), "{}", page.body);
    assert_eq!(reader.get("/queue?key=secret-list").status, 403);
    assert!(reader.get("/").body.contains("may not run INFO"));
    assert!(reader.get("/settings").body.contains("NOPERM"));

    let mut admin = Browser::of(&server);
    admin.log_in("", "p");
    assert!(admin.get("/queue?key=jobs").body.contains(">Pause<"));
    // A change of rights holds for the next page, and a deleted user has none.
    socket.command(&["ACL", "SETUSER", "reader", "-@read"]);
    assert_eq!(reader.get("/queue?key=jobs").status, 403);
    socket.command(&["ACL", "DELUSER", "reader"]);
    wait_until("the session of a deleted user ends", || {
        reader.get("/queues").header("location").is_some()
    });
}

#[test]
fn html_in_names_and_values_is_text() {
    let server = server_with(&[]);
    let evil = "<script>alert(1)</script>\"'><img src=x>";
    let mut socket = server.connect();
    socket.command(&["RPUSH", evil, evil]);
    socket.command(&["TASK.ADD", "t", "1", evil, "ID", evil]);
    socket.command(&[
        "TASK.SCHEDULE",
        "t",
        evil,
        "EVERY",
        "60000",
        "TASK",
        "1",
        evil,
        "GROUP",
        evil,
    ]);
    socket.command(&["XADD", "s", "*", evil, evil]);
    socket.command(&["XGROUP", "CREATE", "s", evil, "0"]);
    let mut browser = Browser::of(&server);
    let escaped: String = evil.bytes().map(|byte| format!("%{byte:02x}")).collect();
    for path in [
        "/queues".to_owned(),
        format!("/queues?match={escaped}"),
        format!("/queue?key={escaped}"),
        "/queue?key=t".to_owned(),
        format!("/queue?key=t&id={escaped}"),
        "/queue?key=t&show=schedules".to_owned(),
        "/queue?key=s".to_owned(),
        "/queue?key=s&show=groups".to_owned(),
        format!("/queue?key=s&group={escaped}"),
        format!("/clients?match={escaped}"),
        format!("/{escaped}"),
        format!("/login?next={escaped}"),
    ] {
        let page = browser.get(&path);
        assert!(page.status < 500, "{path}");
        assert!(
            !page.body.contains("<script>") && !page.body.contains("<img"),
            "{path}: {}",
            page.body
        );
    }
}

#[test]
fn a_page_of_very_many_queues_examines_few() {
    // On a cluster this many keys take long.
    let queues = if is_on_foundationdb() { 5_000 } else { 100_000 };
    let server = server_with(&[]);
    let mut socket = server.connect();
    let mut sent = 0;
    while sent < queues {
        let batch: String = (sent..sent + 1_000)
            .map(|number| format!("RPUSH q{number} x\r\n"))
            .collect();
        socket.send(batch);
        for _ in 0..1_000 {
            assert_eq!(socket.reply(), ":1\r\n");
        }
        sent += 1_000;
    }
    let mut browser = Browser::of(&server);
    browser.get("/");
    let calls = |socket: &mut Socket, command: &str| -> u64 {
        let info = socket.run("INFO commandstats");
        let field = info.split(&format!("cmdstat_{command}:calls=")).nth(1);
        field.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
    };
    let scans = calls(&mut socket, "scan");
    let page = browser.get("/queues");
    assert!(page.body.contains("Next page"));
    assert!(calls(&mut socket, "scan") - scans <= 2);
    assert!(calls(&mut socket, "llen") <= 200);
    // A page ends even if nothing matches.
    let scans = calls(&mut socket, "scan");
    let page = browser.get("/queues?match=nosuch");
    assert!(
        page.body.contains("None of the 2,000 names"),
        "{}",
        page.body
    );
    assert_eq!(calls(&mut socket, "scan") - scans, 20);
    // The links lead to all of them.
    let mut seen = 0;
    let mut path = Some("/queues?match=q7777*".to_owned());
    while let Some(next) = path {
        let page = browser.get(&next);
        seen += page.body.matches(">q7777").count();
        let link = page
            .body
            .split("<a class=\"button\" href=\"")
            .filter_map(|rest| {
                let (link, rest) = rest.split_once('"')?;
                rest.starts_with(">Next page")
                    .then(|| link.replace("&amp;", "&"))
            });
        path = link.into_iter().next();
    }
    let expected = (0..queues)
        .filter(|number| number.to_string().starts_with("7777"))
        .count();
    assert_eq!(seen, expected);
}

#[test]
fn requests_are_bounded() {
    let server = server_with(&[]);
    let mut browser = Browser::of(&server);
    assert_eq!(browser.post("/login", &"a".repeat(70_000)).status, 413);
    assert_eq!(browser.ask("DELETE", "/", "", "").status, 405);
    assert_eq!(browser.get("/nosuch").status, 404);
    assert_eq!(browser.get("/queue?key=nosuch").status, 404);
    // A further session ends the one that was idle longest, and its connection.
    let mut first = Browser::of(&server);
    first.get("/");
    for _ in 0..40 {
        Browser::of(&server).get("/");
    }
    assert!(
        first.get("/").header("set-cookie").is_some(),
        "the first session goes on"
    );
    let mut socket = server.connect();
    wait_until("at most 32 sessions are left", || {
        socket.run("CLIENT LIST").matches("quoin-dashboard").count() <= 32
    });
}

#[test]
fn protected_mode_holds_for_browsers_too() {
    let Some(address) = crate::admission::outer_address() else {
        return;
    };
    let dashboard = format!("{address}:0");
    let server = Server::start_with(&["--dashboard-address", &dashboard]);
    let mut browser = Browser::of(&server);
    let page = browser.get("/");
    assert_eq!(page.status, 303);
    let page = browser.get("/login");
    assert!(page.body.contains("Protected mode"), "{}", page.body);
    assert_eq!(browser.log_in("", "x").status, 403);
}

#[test]
fn https_marks_the_cookie() {
    let authority = Authority::new();
    authority.sign("server");
    let [certificate, key] = ["server.pem", "server.key"].map(|name| authority.text(name));
    let server = server_with(&[
        "--dashboard-tls",
        "yes",
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
    ]);
    let log = server.log();
    let (_, behind) = log.split_once("the dashboard is at https://").unwrap();
    let address: SocketAddr = behind.split('/').next().unwrap().parse().unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let config = Arc::new(crate::tls::client(&authority, None));
    let connection = ClientConnection::new(config, name).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(address).unwrap());
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    // An end without TLS's close_notify is an error of its own.
    let _ = stream.read_to_string(&mut response);
    assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
    assert!(response.contains("SameSite=Strict; Secure"), "{response}");
}

#[test]
fn by_default_it_opens_nothing_new() {
    let mentions = |flags: &[&str]| {
        let server = Server::start_with(&[&["--dashboard-address", "auto"], flags].concat());
        let log = server.log();
        log.contains("the dashboard is at http://127.0.0.1:8379/")
            || log.contains("cannot serve the dashboard at 127.0.0.1:8379")
    };
    assert_eq!(mentions(&[]), !is_on_foundationdb());
    if let Some(address) = crate::admission::outer_address() {
        assert!(!mentions(&["--bind", &address.to_string()]));
    }
}
