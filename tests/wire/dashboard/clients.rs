//! The dashboard's page of clients: what they wait for, who may see that, and how many a page
//! shows.

use super::browser::{Browser, server_with};
use crate::server::{Server, Socket, wait_until};

/// A client that waits.
fn waiting(server: &Server, line: &str) -> Socket {
    let mut probe = server.connect();
    let count = |probe: &mut Socket| {
        let info = probe.run("INFO clients");
        let (_, rest) = info.split_once("blocked_clients:").unwrap();
        rest.split("\r\n").next().unwrap().parse::<u32>().unwrap()
    };
    let before = count(&mut probe);
    let mut client = server.connect();
    client.send(format!("{line}\r\n"));
    wait_until("a client waits", || count(&mut probe) > before);
    client
}

/// The rows of the table.
fn rows(page: &str) -> Vec<&str> {
    page.split("<tr>").skip(2).collect()
}

#[test]
fn the_first_keys_that_a_client_waits_for_lead_to_their_pages() {
    let server = server_with(&[]);
    let _client = waiting(&server, "BLPOP one two three four five 0");
    let mut browser = Browser::of(&server);
    let page = browser.get("/clients").body;
    let first = rows(&page)[0];
    for key in ["one", "two", "three"] {
        let link = format!("<a href=\"/queue?db=0&amp;key={key}\">{key}</a>");
        assert!(first.contains(&link), "{first}");
    }
    assert!(
        first.contains("</a> and 2 more") && !first.contains("four"),
        "{first}"
    );
}

#[test]
fn a_wait_has_a_beginning_and_ends_with_its_command() {
    let server = server_with(&[]);
    let mut client = waiting(&server, "BLPOP jobs 0");
    client.send("BLPOP jobs 0\r\n");
    let mut browser = Browser::of(&server);
    let since = |browser: &mut Browser| {
        let page = browser.get("/clients?match=blpop").body;
        let (_, rest) = page.split_once("title=\"since ")?;
        Some(rest.split('"').next().unwrap().to_owned())
    };
    let first = since(&mut browser).unwrap();
    assert!(first.ends_with(" UTC"), "{first}");
    // What the client sends meanwhile changes nothing. Its next command begins a new wait.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    assert_eq!(since(&mut browser).as_ref(), Some(&first));
    let mut other = server.connect();
    other.run("RPUSH jobs a");
    client.reply();
    wait_until("it waits again", || {
        since(&mut browser).is_some_and(|since| since > first)
    });
    other.run("RPUSH jobs b");
    client.reply();
    assert_eq!(since(&mut browser), None);
}

#[test]
fn who_waits_for_no_key_is_told_apart() {
    let server = server_with(&[]);
    let _client = waiting(&server, "WAIT 1 0");
    let mut browser = Browser::of(&server);
    let page = browser.get("/clients").body;
    assert!(
        page.contains("title=\"since ") && !page.contains("<br>for "),
        "{page}"
    );
    server.connect().run("CLIENT PAUSE 60000 WRITE");
    let _held = waiting(&server, "SET a b");
    let page = browser.get("/clients").body;
    assert_eq!(
        page.matches("for the end of CLIENT PAUSE").count(),
        1,
        "{page}"
    );
}

#[test]
fn keys_that_a_user_may_not_read_are_not_named() {
    let server = server_with(&[]);
    let _both = waiting(&server, "BLPOP closed-a mine 0");
    let _one = waiting(&server, "BRPOP closed-b closed-c 0");
    let mut socket = server.connect();
    socket.command(&[
        "ACL",
        "SETUSER",
        "worker",
        "on",
        ">w",
        "~mine",
        "+client|list",
        "+select",
    ]);
    socket.command(&[
        "ACL", "SETUSER", "blind", "on", ">b", "~*", "+@read", "+select",
    ]);
    socket.command(&["ACL", "SETUSER", "default", "resetpass", ">p"]);
    let mut worker = Browser::of(&server);
    worker.log_in("worker", "w");
    let page = worker.get("/clients").body;
    assert!(
        page.contains(">mine</a> and 1 more") && page.contains("for 2 keys"),
        "{page}"
    );
    assert!(!page.contains("closed"), "{page}");
    // Without CLIENT LIST there are not even numbers.
    let mut blind = Browser::of(&server);
    blind.log_in("blind", "b");
    let page = blind.get("/clients").body;
    assert!(
        page.contains("NOPERM") && !page.contains("connected"),
        "{page}"
    );
}

#[test]
fn of_very_many_clients_those_that_wait_are_shown_first() {
    let server = server_with(&[]);
    let _waiting = waiting(&server, "BLPOP jobs 0");
    let mut others: Vec<Socket> = (0..250).map(|_| server.connect()).collect();
    for client in &mut others {
        client.run("CLIENT SETNAME crowd");
    }
    let mut browser = Browser::of(&server);
    let page = browser.get("/clients").body;
    let shown = rows(&page);
    assert_eq!(shown.len(), 200);
    assert!(
        shown[0].contains(">blpop<") && shown[0].contains(">waiting<"),
        "{}",
        shown[0]
    );
    // The dashboard's own connection was active just now.
    assert!(shown[1].contains("quoin-dashboard"), "{}", shown[1]);
    assert!(
        page.contains("Showing 200 of 252.") && page.contains("252 connected, 1 waiting"),
        "{page}"
    );
    let page = browser.get("/clients?match=CROWD").body;
    assert!(page.contains("Showing 200 of 250."), "{page}");
    let page = browser.get("/clients?match=nosuch").body;
    assert!(
        rows(&page).is_empty() && page.contains("252 connected"),
        "{page}"
    );
}
