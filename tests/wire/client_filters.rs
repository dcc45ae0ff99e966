//! CLIENT LIST and CLIENT KILL with Valkey's options, which Redis does not have.

use crate::server::{Server, Socket, wait_until};

fn id(socket: &mut Socket) -> String {
    let reply = socket.run("CLIENT ID");
    reply.trim_start_matches(':').trim_end().to_owned()
}

/// The names of the clients that CLIENT LIST shows, in alphabetical order.
fn listed(socket: &mut Socket, options: &str) -> Vec<String> {
    let reply = socket.run(&format!("CLIENT LIST {options}"));
    assert!(reply.starts_with('$'), "{options}: {reply}");
    let fields = reply.split([' ', '\r', '\n']);
    let mut names: Vec<String> = fields
        .filter_map(|field| field.strip_prefix("name="))
        .map(str::to_owned)
        .collect();
    names.sort();
    names
}

/// A client that asks, and three others with a name each.
fn clients(server: &Server) -> [Socket; 4] {
    let mut asking = server.connect();
    asking.run("CLIENT SETNAME asking");
    asking.run("ACL SETUSER someone on nopass ~* +@all");
    let mut one = server.connect();
    one.run("CLIENT SETNAME one");
    one.run("CLIENT SETINFO LIB-NAME lib");
    one.run("CLIENT SETINFO LIB-VER 1.2");
    let mut two = server.connect();
    two.run("AUTH someone any");
    two.run("CLIENT SETNAME two");
    two.run("SELECT 3");
    two.run("CLIENT NO-EVICT ON");
    two.run("CLIENT NO-TOUCH ON");
    assert_eq!(two.run("CLIENT CAPA other Redirect"), "+OK\r\n");
    let mut three = server.connect();
    three.run("CLIENT SETNAME three");
    three.run("SUBSCRIBE channel");
    [asking, one, two, three]
}

#[test]
fn each_option_and_its_negation_choose_clients() {
    let server = Server::start();
    let [mut asking, mut one, mut two, three] = clients(&server);
    let (first, second) = (id(&mut one), id(&mut two));
    let address = three.local_address();
    let own = server.address();
    for (option, chosen) in [
        (format!("ID {first} {second}"), &["one", "two"][..]),
        (format!("ADDR {address}"), &["three"]),
        (format!("LADDR {own}"), &["asking", "one", "three", "two"]),
        ("TYPE pubsub".to_owned(), &["three"]),
        ("USER someone".to_owned(), &["two"]),
        ("NAME one".to_owned(), &["one"]),
        ("LIB-NAME lib".to_owned(), &["one"]),
        ("LIB-VER 1.2".to_owned(), &["one"]),
        ("DB 3".to_owned(), &["two"]),
        ("FLAGS eT".to_owned(), &["two"]),
        ("FLAGS P".to_owned(), &["three"]),
        ("CAPA r".to_owned(), &["two"]),
        ("FLAGS eP".to_owned(), &[]),
        (
            "IP 127.0.0.1".to_owned(),
            &["asking", "one", "three", "two"],
        ),
    ] {
        assert_eq!(listed(&mut asking, &format!("{option} SKIPME no")), chosen);
        let others = ["asking", "one", "three", "two"];
        let others = others.into_iter().filter(|name| !chosen.contains(name));
        let others: Vec<_> = others.collect();
        assert_eq!(listed(&mut asking, &format!("not-{option}")), others);
    }
}

#[test]
fn options_are_combined_and_the_last_of_a_kind_holds() {
    let server = Server::start();
    let [mut asking, mut one, mut two, _three] = clients(&server);
    let (first, second) = (id(&mut one), id(&mut two));
    for (options, chosen) in [
        ("SKIPME yes".to_owned(), &["one", "three", "two"][..]),
        ("SKIPME yes NOT-TYPE pubsub".to_owned(), &["one", "two"]),
        (format!("ID {first} {second} NOT-DB 3"), &["one"]),
        (format!("NOT-DB 3 ID {first} {second}"), &["one"]),
        ("NAME one NAME two".to_owned(), &["two"]),
        (format!("ID {first} USER someone"), &[]),
    ] {
        assert_eq!(listed(&mut asking, &options), chosen, "{options}");
    }
    // As in Redis, repeated ids of one option add up, and other options replace their earlier
    // values.
    let killed = asking.run(&format!("CLIENT KILL ID {first} ID {second} NAME one"));
    assert_eq!(killed, ":0\r\n");
}

#[test]
fn clients_are_killed_by_the_same_options() {
    let server = Server::start();
    let [mut asking, mut one, mut two, mut three] = clients(&server);
    let (first, second) = (id(&mut one), id(&mut two));
    assert_eq!(asking.run("CLIENT KILL NOT-NAME one NOT-DB 3"), ":1\r\n");
    assert_eq!(three.rest(), "");
    let killed = asking.run(&format!("CLIENT KILL ID {first} {second}"));
    assert_eq!(killed, ":2\r\n");
    assert_eq!((one.rest(), two.rest()), (String::new(), String::new()));
    // It kills itself, too, if it wants.
    assert_eq!(asking.run("CLIENT KILL NOT-NAME x SKIPME no"), ":1\r\n");
    assert_eq!(asking.rest(), "");
}

#[test]
fn silent_clients_are_found() {
    let server = Server::start();
    let [mut asking, _one, _two, _three] = clients(&server);
    assert_eq!(listed(&mut asking, "IDLE 1000"), [] as [&str; 0]);
    wait_until("they are silent", || {
        listed(&mut asking, "IDLE 1") == ["one", "three", "two"]
    });
}

#[test]
fn options_that_are_wrong_are_refused() {
    let server = Server::start();
    let mut socket = server.connect();
    for (options, error) in [
        ("ID 1 2 FOO", "ERR syntax error"),
        ("NOT-ID x", "ERR client-id should be greater than 0"),
        ("NOT-ID 1 0", "ERR client-id should be greater than 0"),
        ("NOT-SKIPME yes", "ERR syntax error"),
        ("NOT-MAXAGE 1", "ERR syntax error"),
        ("SKIPME maybe", "ERR syntax error"),
        ("NAME", "ERR syntax error"),
        ("NOT-TYPE x", "ERR Unknown client type 'x'"),
        ("NOT-USER nobody", "ERR No such user 'nobody'"),
        ("IDLE x", "ERR idle is not an integer or out of range"),
        ("IDLE 0", "ERR idle should be greater than 0"),
        ("DB x", "ERR DB is not an integer or out of range"),
        ("DB 16", "ERR DB number should be between 0 and 15"),
        ("NOT-DB -1", "ERR NOT-DB number should be between 0 and 15"),
        (
            "FLAGS ?",
            "ERR Unknown flags found in the provided filter: ?",
        ),
        (
            "NOT-FLAGS N?",
            "ERR Unknown flags found in the NOT-FLAGS filter: N?",
        ),
        (
            "CAPA rx",
            "ERR Unknown capa found in the provided filter: rx",
        ),
        (
            "NOT-CAPA R",
            "ERR Unknown capa found in the NOT-CAPA filter: R",
        ),
    ] {
        let reply = socket.run(&format!("CLIENT KILL {options} SKIPME yes"));
        let reply = match options {
            // NAME must come last to have no value: before SKIPME it would take that as its value.
            "NAME" => socket.run("CLIENT KILL SKIPME yes NAME"),
            _ => reply,
        };
        assert_eq!(reply, format!("-{error}\r\n"), "{options}");
    }
    let reply = socket.run("CLIENT LIST ID 1 x");
    assert_eq!(reply, "-ERR Invalid client ID\r\n");
}
