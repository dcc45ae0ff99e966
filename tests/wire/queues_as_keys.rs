//! The commands that know every key know priority queues and task queues.

use std::time::Duration;

use crate::server::{Server, Socket, wait_until};

/// A kind of queue, and how to request its length and content.
struct Kind {
    name: &'static str,
    /// Puts `a` and then `b` into the key `q`.
    fill: [&'static str; 2],
    len: &'static str,
    /// Shows both. `@` stands for the key.
    peek: &'static str,
    peeked: &'static str,
    take: &'static str,
    taken: &'static str,
}

const KINDS: [Kind; 2] = [
    Kind {
        name: "pqueue",
        fill: ["PQ.PUSH q 1 a", "PQ.PUSH q 2.5 b"],
        len: "PQ.LEN",
        peek: "PQ.RANGE @ 0 -1",
        peeked: "*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$3\r\n2.5\r\n",
        take: "PQ.POPMIN @",
        taken: "*2\r\n$1\r\na\r\n$1\r\n1\r\n",
    },
    Kind {
        name: "taskqueue",
        fill: [
            "TASK.ADD q 1 work ID a NEEDS gb 2",
            "TASK.ADD q 2.5 more ID b",
        ],
        len: "TASK.LEN",
        peek: "TASK.PEEK @ COUNT 9 HAVING gb 2",
        peeked: "*2\r\n*5\r\n$1\r\na\r\n$1\r\n1\r\n:0\r\n*2\r\n$2\r\ngb\r\n$1\r\n2\r\n$4\r\nwork\r\n\
                 *5\r\n$1\r\nb\r\n$3\r\n2.5\r\n:0\r\n*0\r\n$4\r\nmore\r\n",
        take: "TASK.TAKE @ HAVING gb 2",
        taken: "*1\r\n*5\r\n$1\r\na\r\n$1\r\n1\r\n:1\r\n*2\r\n$2\r\ngb\r\n$1\r\n2\r\n$4\r\nwork\r\n",
    },
];

impl Kind {
    fn fill(&self, socket: &mut Socket) {
        for line in self.fill {
            let reply = socket.run(line);
            assert!(!reply.starts_with('-'), "{line}: {reply}");
        }
    }

    /// Checks that a key has what was filled in, and nothing else.
    fn assert_whole(&self, socket: &mut Socket, key: &str) {
        assert_eq!(
            socket.run(&format!("TYPE {key}")),
            format!("+{}\r\n", self.name)
        );
        assert_eq!(socket.run(&format!("{} {key}", self.len)), ":2\r\n");
        assert_eq!(
            socket.run(&self.peek.replace('@', key)),
            self.peeked,
            "{key}"
        );
    }
}

/// For each kind, on an empty server.
fn for_each(test: impl Fn(&Kind, &mut Socket)) {
    let server = Server::start();
    let mut socket = server.connect();
    for kind in &KINDS {
        test(kind, &mut socket);
        assert_eq!(socket.run("FLUSHALL"), "+OK\r\n");
    }
}

#[test]
fn rename_takes_all_of_it_along() {
    for_each(|kind, socket| {
        kind.fill(socket);
        assert_eq!(socket.run("RENAME q r"), "+OK\r\n");
        assert_eq!(socket.run("EXISTS q"), ":0\r\n");
        kind.assert_whole(socket, "r");
        socket.run("RPUSH l x");
        assert_eq!(socket.run("RENAMENX r l"), ":0\r\n");
        assert_eq!(socket.run("RENAME r l"), "+OK\r\n");
        kind.assert_whole(socket, "l");
    });
}

#[test]
fn a_copy_is_another_queue() {
    for_each(|kind, socket| {
        kind.fill(socket);
        assert_eq!(socket.run("COPY q r"), ":1\r\n");
        assert_eq!(socket.run("COPY q r"), ":0\r\n");
        assert_eq!(socket.run(&kind.take.replace('@', "q")), kind.taken);
        kind.assert_whole(socket, "r");
        assert_eq!(socket.run("COPY q r REPLACE"), ":1\r\n");
        assert_eq!(socket.run(&format!("{} r", kind.len)), ":1\r\n");
        assert_eq!(socket.run("COPY q r DB 3"), ":1\r\n");
        assert_eq!(socket.run("DEL q"), ":1\r\n");
        socket.run("SELECT 3");
        assert_eq!(socket.run(&format!("{} r", kind.len)), ":1\r\n");
        socket.run("SELECT 0");
    });
}

#[test]
fn move_takes_it_to_another_database() {
    for_each(|kind, socket| {
        kind.fill(socket);
        assert_eq!(socket.run("MOVE q 3"), ":1\r\n");
        assert_eq!(socket.run(&format!("{} q", kind.len)), ":0\r\n");
        socket.run("SELECT 3");
        kind.assert_whole(socket, "q");
        assert_eq!(socket.run(&kind.take.replace('@', "q")), kind.taken);
        socket.run("SELECT 0");
    });
}

#[test]
fn scan_finds_it_by_its_type() {
    let server = Server::start();
    let mut socket = server.connect();
    KINDS[0].fill(&mut socket);
    socket.run("RENAME q p");
    KINDS[1].fill(&mut socket);
    socket.run("RPUSH l x");
    for (name, key) in [("pqueue", "p"), ("taskqueue", "q"), ("list", "l")] {
        let found = format!("*2\r\n$1\r\n0\r\n*1\r\n$1\r\n{key}\r\n");
        let line = format!("SCAN 0 COUNT 100 TYPE {name}");
        assert_eq!(socket.run(&line), found);
    }
    assert_eq!(socket.run("DBSIZE"), ":3\r\n");
}

#[test]
fn memory_usage_grows_with_it() {
    for_each(|kind, socket| {
        let usage = |socket: &mut Socket| -> i64 {
            let reply = socket.run("MEMORY USAGE q SAMPLES 0");
            let number = reply.strip_prefix(':');
            number
                .and_then(|one| one.trim_end().parse().ok())
                .unwrap_or_else(|| panic!("{reply}"))
        };
        assert_eq!(socket.run("MEMORY USAGE q"), "$-1\r\n");
        kind.fill(socket);
        let small = usage(socket);
        for number in 0..20 {
            let line = match kind.name {
                "pqueue" => format!("PQ.PUSH q {number} {}", "x".repeat(500)),
                _ => format!("TASK.ADD q {number} {}", "x".repeat(500)),
            };
            socket.run(&line);
        }
        assert!(small > 0 && usage(socket) > small + 20 * 500);
    });
}

#[test]
fn it_expires_whole() {
    for_each(|kind, socket| {
        kind.fill(socket);
        assert_eq!(socket.run("TTL q"), ":-1\r\n");
        assert_eq!(socket.run("EXPIRE q 100"), ":1\r\n");
        assert_eq!(socket.run("TTL q"), ":100\r\n");
        kind.assert_whole(socket, "q");
        // Taking some elements leaves the expiry of the rest.
        socket.run(&kind.take.replace('@', "q"));
        assert_eq!(socket.run("PERSIST q"), ":1\r\n");
        assert_eq!(socket.run("PEXPIRE q 20"), ":1\r\n");
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(socket.run(&format!("{} q", kind.len)), ":0\r\n");
        assert_eq!(socket.run("EXISTS q"), ":0\r\n");
        kind.fill(socket);
        kind.assert_whole(socket, "q");
    });
}

#[test]
fn a_transaction_fills_and_empties_it() {
    for_each(|kind, socket| {
        assert_eq!(socket.run("MULTI"), "+OK\r\n");
        let take = kind.take.replace('@', "q");
        for line in kind
            .fill
            .iter()
            .chain([&take.as_str(), &take.as_str(), &"EXISTS q"])
        {
            assert_eq!(socket.run(line), "+QUEUED\r\n");
        }
        let replies = socket.run("EXEC");
        assert!(replies.starts_with("*5\r\n"), "{replies}");
        assert!(replies.contains(kind.taken), "{replies}");
        assert!(replies.ends_with(":0\r\n"), "{replies}");
        // DISCARD leaves it as it was.
        kind.fill(socket);
        socket.run("MULTI");
        socket.run(&take);
        assert_eq!(socket.run("DISCARD"), "+OK\r\n");
        kind.assert_whole(socket, "q");
    });
}

#[test]
fn a_change_spoils_the_transaction_of_who_watches_it() {
    let server = Server::start();
    let (mut watching, mut changing) = (server.connect(), server.connect());
    for kind in &KINDS {
        kind.fill(&mut changing);
        watching.run("WATCH q");
        changing.run(&kind.take.replace('@', "q"));
        watching.run("MULTI");
        watching.run("DEL q");
        assert_eq!(watching.run("EXEC"), "*-1\r\n", "{}", kind.name);
        changing.run("DEL q");
    }
}

/// Delays and leases have rows by time and key in addition to the queue's own.
#[test]
fn delays_and_leases_of_a_task_queue_end_under_its_new_name_and_in_another_database() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("TASK.ADD q 1 work ID a");
    socket.run("TASK.ADD q 1 work ID b DELAY 200");
    socket.run("TASK.TAKE q LEASE 200");
    assert_eq!(socket.run("RENAME q r"), "+OK\r\n");
    assert_eq!(socket.run("COPY r s DB 3"), ":1\r\n");
    assert_eq!(socket.run("MOVE r 2"), ":1\r\n");
    for (database, key) in [(2, "r"), (3, "s")] {
        socket.run(&format!("SELECT {database}"));
        wait_until("both are ready", || {
            socket.run(&format!("TASK.LEN {key} READY")) == ":2\r\n"
        });
    }
}
