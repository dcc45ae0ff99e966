//! The dashboard's pages of task queues, and the effect of their buttons.

use super::browser::{Browser, server_with};
use crate::server::{Socket, request, wait_until};

/// Adds a user who may see everything and change nothing.
fn add_reader(socket: &mut Socket) {
    socket.command(&["ACL", "SETUSER", "reader", "on", ">r", "~*", "+@read"]);
    socket.command(&["ACL", "SETUSER", "default", "resetpass", ">p"]);
}

#[test]
fn the_schedules_of_a_task_queue_are_shown_with_all_that_was_set() {
    let server = server_with(&[]);
    let mut socket = server.connect();
    socket.command(&[
        "TASK.SCHEDULE",
        "q",
        "nightly",
        "CRON",
        "30 2 * * *",
        "TZ",
        "Europe/Berlin",
        "MISSED",
        "ALL",
        "TASK",
        "5",
        "payload-a",
        "NEEDS",
        "gb",
        "3",
        "DELAY",
        "60000",
        "MAXTRIES",
        "4",
        "TTL",
        "90000",
        "UNIQUE",
        "token-a",
        "7200000",
        "GROUP",
        "tenant-a",
    ]);
    socket.run("TASK.SCHEDULE q poll EVERY 60000 MISSED SKIP TASK 9 payload-b");
    socket.run("TASK.PAUSE q SCHEDULE poll");
    let mut browser = Browser::of(&server);
    let page = browser.get("/queue?key=q");
    let tab = "/queue?db=0&amp;key=q&amp;show=schedules";
    assert!(page.body.contains(tab), "{}", page.body);
    let page = browser.get("/queue?key=q&show=schedules").body;
    let rows: Vec<&str> = page.split("<tr>").skip(2).collect();
    let [nightly, poll] = rows[..] else {
        panic!("{page}");
    };
    for shown in [
        "nightly",
        "30 2 * * *",
        "Europe/Berlin",
        ">all<",
        "UTC\">in ",
        "never",
        "payload-a",
        "priority 5",
        "needs gb 3",
        "delay 1 min",
        "maxtries 4",
        "ttl 90 s",
        "unique token-a for 2 h",
        "group tenant-a",
    ] {
        assert!(nightly.contains(shown), "{shown}: {nightly}");
    }
    for shown in [
        "poll",
        "every 1 min",
        ">skip<",
        ">paused<",
        "payload-b",
        ">Resume<",
    ] {
        assert!(poll.contains(shown), "{shown}: {poll}");
    }
    assert!(!poll.contains("UTC") && !poll.contains(">Pause<"), "{poll}");
}

#[test]
fn a_task_that_a_schedule_could_not_add_is_told() {
    let server = server_with(&[]);
    let mut socket = server.connect();
    socket.run("TASK.SETOPTIONS q MAXLEN 1");
    socket.run("TASK.ADD q 1 first");
    socket.run("TASK.SCHEDULE q poll EVERY 1000 TASK 1 work");
    let mut browser = Browser::of(&server);
    wait_until("the queue was too full for a task", || {
        let page = browser.get("/queue?key=q&show=schedules").body;
        page.contains("not added: FULL Task queue is full")
    });
}

#[test]
fn more_schedules_than_fit_are_on_a_further_page() {
    let server = server_with(&[]);
    let mut socket = server.connect();
    for number in 100..160 {
        socket.run(&format!(
            "TASK.SCHEDULE q s{number} EVERY 60000 TASK 1 work"
        ));
    }
    let mut browser = Browser::of(&server);
    let page = browser.get("/queue?key=q&show=schedules").body;
    assert!(
        page.contains(">s149<") && !page.contains(">s150<"),
        "{page}"
    );
    let (before, _) = page.split_once("\">Next page").unwrap();
    let link = before.rsplit('"').next().unwrap().replace("&amp;", "&");
    let page = browser.get(&link).body;
    assert!(
        page.contains(">s150<") && !page.contains(">s149<"),
        "{page}"
    );
    assert!(
        page.contains("First page") && !page.contains("Next page"),
        "{page}"
    );
}

#[test]
fn a_schedule_of_any_name_is_paused_resumed_and_removed() {
    let server = server_with(&[]);
    let mut socket = server.connect();
    let name = &b"a&b=\"c'\xff%"[..];
    let words = [
        "TASK.SCHEDULE",
        "q",
        "?",
        "EVERY",
        "60000",
        "TASK",
        "1",
        "work",
    ];
    let mut words = words.map(str::as_bytes);
    words[2] = name;
    socket.send(request(&words));
    socket.reply();
    let mut browser = Browser::of(&server);
    let shown = "/queue?db=0&key=q&show=schedules";
    // The form's target is the one in the page.
    let mut press = |action: &str| {
        let page = browser.get(shown);
        let mut forms = page
            .body
            .split("<form ")
            .filter(|form| form.contains(&format!("value=\"{action}\"")));
        let form = forms.next().unwrap();
        let path = form
            .split("action=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap()
            .replace("&amp;", "&");
        let form = format!("action={action}&token={}", page.token());
        let page = browser.post(&path, &form);
        (page.header("location").unwrap().to_owned(), page.status)
    };
    assert_eq!(press("pause-schedule"), (shown.to_owned(), 303));
    assert!(socket.run("TASK.SCHEDULES q").contains("paused\r\n:1\r\n"));
    press("resume-schedule");
    assert!(socket.run("TASK.SCHEDULES q").contains("paused\r\n:0\r\n"));
    // Nothing is left of the queue, so there is no page to return to.
    assert_eq!(press("unschedule"), ("/queues?db=0".to_owned(), 303));
    assert_eq!(socket.run("EXISTS q"), ":0\r\n");
    assert!(
        browser
            .get("/queues")
            .body
            .contains("Removed schedule a&amp;b=")
    );
}

#[test]
fn who_may_only_read_sees_schedules_without_buttons() {
    let server = server_with(&[]);
    let mut socket = server.connect();
    socket.run("TASK.SCHEDULE q poll EVERY 60000 TASK 1 work");
    add_reader(&mut socket);
    let mut reader = Browser::of(&server);
    reader.log_in("reader", "r");
    let page = reader.get("/queue?key=q&show=schedules");
    assert!(page.body.contains(">poll<"), "{}", page.body);
    for button in ["Pause", "Remove"] {
        assert!(!page.body.contains(&format!(">{button}<")), "{button}");
    }
    let form = format!("action=unschedule&token={}", page.token());
    reader.post("/queue?key=q&show=schedules&schedule=poll", &form);
    let page = reader.get("/queue?key=q&show=schedules");
    assert!(page.body.contains("NOPERM"), "{}", page.body);
    assert!(page.body.contains(">poll<"), "{}", page.body);
}

/// Where a button leads.
fn press(browser: &mut Browser, path: &str, form: &str) -> String {
    let token = browser.get("/queues").token();
    let page = browser.post(path, &format!("{form}&token={token}"));
    assert_eq!(page.status, 303, "{}", page.body);
    let location = page.header("location").unwrap().to_owned();
    browser.get(&location).body
}

#[test]
fn a_task_moves_to_the_queue_that_is_named() {
    let server = server_with(&[]);
    let mut socket = server.connect();
    socket.run("TASK.ADD q 1 payload ID one");
    socket.run("TASK.ADD q 1 payload ID two");
    let mut browser = Browser::of(&server);
    let page = browser.get("/queue?key=q&state=ready&id=one").body;
    assert!(
        page.contains(">Move<") && page.contains("name=\"destination\" required"),
        "{page}"
    );
    let shown = press(
        &mut browser,
        "/queue?key=q&state=ready&task=one",
        "action=move&destination=a%26b+c",
    );
    assert!(
        shown.contains("Moved one to a&amp;b c.") && shown.contains(">two<"),
        "{shown}"
    );
    assert!(
        socket
            .command(&["TASK.GET", "a&b c", "one"])
            .contains("payload")
    );
    assert_eq!(socket.run("TASK.LEN q"), ":1\r\n");
}

#[test]
fn a_task_that_cannot_be_moved_stays_and_its_page_says_why() {
    let server = server_with(&[]);
    let mut socket = server.connect();
    socket.run("TASK.ADD q 1 payload ID one");
    socket.run("TASK.TAKE q LEASE 3600000");
    socket.run("TASK.ADD q 1 payload ID two");
    socket.run("TASK.ADD other 1 payload ID two");
    let mut browser = Browser::of(&server);
    let page = browser.get("/queue?key=q&state=leased&id=one").body;
    assert!(
        page.contains(">Remove<") && !page.contains(">Move<"),
        "{page}"
    );
    for (task, destination, expected) in [
        (
            "one",
            "other",
            "one was not moved: it is leased, waiting or gone.",
        ),
        (
            "gone",
            "other",
            "gone was not moved: it is leased, waiting or gone.",
        ),
        ("two", "other", "EXISTS Task id already exists"),
        (
            "two",
            "q",
            "ERR source and destination objects are the same",
        ),
        ("two", "", "Nothing was moved: enter a task queue."),
    ] {
        let path = format!("/queue?key=q&state=ready&task={task}");
        let shown = press(
            &mut browser,
            &path,
            &format!("action=move&destination={destination}"),
        );
        assert!(shown.contains(expected), "{expected}: {shown}");
        assert_eq!(socket.run("TASK.LEN q"), ":2\r\n");
    }
}

#[test]
fn all_tasks_of_a_state_move_and_those_of_others_stay() {
    let server = server_with(&[]);
    let mut socket = server.connect();
    for number in 0..1_500 {
        socket.run(&format!("TASK.ADD q 1 payload ID t{number} DELAY 3600000"));
    }
    socket.run("TASK.ADD q 1 payload ID ready");
    let mut browser = Browser::of(&server);
    assert!(
        browser
            .get("/queue?key=q&state=delayed")
            .body
            .contains(">Move all<")
    );
    let form = "action=move-all&state=delayed&destination=later";
    let shown = press(&mut browser, "/queue?key=q&state=delayed", form);
    assert!(shown.contains("Moved 1,500 tasks."), "{shown}");
    assert_eq!(socket.run("TASK.LEN later DELAYED"), ":1500\r\n");
    assert_eq!(socket.run("TASK.LEN q"), ":1\r\n");
    let shown = press(&mut browser, "/queue?key=q&state=delayed", form);
    assert!(
        shown.contains("Nothing was moved: no task is delayed any more."),
        "{shown}"
    );
    // The last task of a queue takes its page along.
    let form = "action=move-all&state=ready&destination=later";
    let shown = press(&mut browser, "/queue?key=q&state=ready", form);
    assert!(
        shown.contains("Moved 1 task.") && shown.contains(">later<"),
        "{shown}"
    );
}

#[test]
fn tasks_move_only_where_the_user_may_write() {
    let server = server_with(&[]);
    let mut socket = server.connect();
    socket.run("TASK.ADD mine 1 payload ID one");
    socket.command(&[
        "ACL",
        "SETUSER",
        "worker",
        "on",
        ">w",
        "~mine*",
        "+@read",
        "+@taskqueue",
        "+select",
    ]);
    add_reader(&mut socket);
    let path = "/queue?key=mine&state=ready&id=one";
    let mut reader = Browser::of(&server);
    reader.log_in("reader", "r");
    assert!(!reader.get(path).body.contains(">Move<"));
    let mut worker = Browser::of(&server);
    worker.log_in("worker", "w");
    assert!(worker.get(path).body.contains(">Move<"));
    let token = worker.get(path).token();
    let mut moved = |to: &str| {
        let form = format!("action=move&destination={to}&token={token}");
        worker.post("/queue?key=mine&state=ready&task=one", &form);
        worker.get("/queue?key=mine-too").status
    };
    assert_eq!(moved("others"), 404);
    assert_eq!(socket.run("EXISTS others"), ":0\r\n");
    assert_eq!(moved("mine-too"), 200);
}
