//! Queues of known frameworks, recognised by the names of their keys, with the counts that their own boards show.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use quoin_base::limits::{DASHBOARD_FRAMEWORK_NAMES_MAX, DASHBOARD_FRAMEWORK_QUEUES_MAX};
use quoin_queues::cursor_and_names;

use crate::figures::{count, readable};
use crate::request::url;
use crate::view::{NoPage, Page, View, Words, number, words};

/// Number of names that one SCAN examines.
const NAMES_PER_SCAN: usize = 1_000;
/// Separates the parts of a binding in kombu, and the name of a queue from its priority.
const KOMBU_SEPARATOR: &str = "\u{6}\u{16}";
/// The priorities that have separate lists in kombu.
const KOMBU_PRIORITIES: [u8; 3] = [3, 6, 9];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Framework {
    Celery,
    Rq,
    BullMq,
    Bull,
    Sidekiq,
    Resque,
    Dramatiq,
    Huey,
    Laravel,
}

use Framework::{Bull, BullMq, Celery, Dramatiq, Huey, Laravel, Resque, Rq, Sidekiq};

impl Framework {
    fn name(self) -> &'static str {
        match self {
            Celery => "Celery",
            Rq => "RQ",
            BullMq => "BullMQ",
            Bull => "Bull",
            Sidekiq => "Sidekiq",
            Resque => "Resque",
            Dramatiq => "Dramatiq",
            Huey => "Huey",
            Laravel => "Laravel",
        }
    }

    /// The counts of a queue: label, key, and command.
    fn counts(self, queue: &str) -> Vec<Count> {
        let one = |label, command, key: String| Count::new(label, command, key);
        match self {
            Celery => {
                let priorities =
                    KOMBU_PRIORITIES.map(|priority| format!("{queue}{KOMBU_SEPARATOR}{priority}"));
                let mut ready = one("Ready", "LLEN", queue.to_owned());
                ready
                    .commands
                    .extend(priorities.iter().map(|key| words!["LLEN", key]));
                vec![ready]
            }
            Rq => vec![
                one("Queued", "LLEN", format!("rq:queue:{queue}")),
                one("Started", "ZCARD", format!("rq:wip:{queue}")),
                one("Scheduled", "ZCARD", format!("rq:scheduled:{queue}")),
                one("Deferred", "ZCARD", format!("rq:deferred:{queue}")),
                one("Finished", "ZCARD", format!("rq:finished:{queue}")),
                one("Failed", "ZCARD", format!("rq:failed:{queue}")),
            ],
            BullMq => vec![
                one("Waiting", "LLEN", format!("{queue}:wait")),
                one("Active", "LLEN", format!("{queue}:active")),
                one("Prioritized", "ZCARD", format!("{queue}:prioritized")),
                one("Delayed", "ZCARD", format!("{queue}:delayed")),
                one(
                    "Waiting children",
                    "ZCARD",
                    format!("{queue}:waiting-children"),
                ),
                one("Paused", "LLEN", format!("{queue}:paused")),
                one("Completed", "ZCARD", format!("{queue}:completed")),
                one("Failed", "ZCARD", format!("{queue}:failed")),
            ],
            Bull => vec![
                one("Waiting", "LLEN", format!("{queue}:wait")),
                one("Active", "LLEN", format!("{queue}:active")),
                one("Delayed", "ZCARD", format!("{queue}:delayed")),
                one("Paused", "LLEN", format!("{queue}:paused")),
                one("Completed", "ZCARD", format!("{queue}:completed")),
                one("Failed", "ZCARD", format!("{queue}:failed")),
            ],
            Sidekiq => vec![one("Size", "LLEN", format!("queue:{queue}"))],
            Resque => vec![one("Jobs", "LLEN", format!("resque:queue:{queue}"))],
            Dramatiq => vec![
                one("Ready", "LLEN", format!("dramatiq:{queue}")),
                one("Delayed", "LLEN", format!("dramatiq:{queue}.DQ")),
                one("Dead", "ZCARD", format!("dramatiq:{queue}.XQ")),
            ],
            Huey => vec![
                one("Ready", "LLEN", format!("huey.redis.{queue}")),
                one("Scheduled", "ZCARD", format!("huey.schedule.{queue}")),
                one("Results", "HLEN", format!("huey.results.{queue}")),
            ],
            Laravel => vec![
                one("Ready", "LLEN", queue.to_owned()),
                one("Reserved", "ZCARD", format!("{queue}:reserved")),
                one("Delayed", "ZCARD", format!("{queue}:delayed")),
            ],
        }
    }

    /// Counts of all its queues together.
    fn shared(self) -> Vec<Count> {
        let one = |label, command, key: &str| Count::new(label, command, key.to_owned());
        match self {
            Celery => vec![one("Unacknowledged", "HLEN", "unacked")],
            Rq => vec![one("Workers", "SCARD", "rq:workers")],
            Sidekiq => vec![
                one("Scheduled", "ZCARD", "schedule"),
                one("Retries", "ZCARD", "retry"),
                one("Dead", "ZCARD", "dead"),
                one("Processes", "SCARD", "processes"),
            ],
            Resque => vec![
                one("Failed", "LLEN", "resque:failed"),
                one("Workers", "SCARD", "resque:workers"),
            ],
            BullMq | Bull | Dramatiq | Huey | Laravel => Vec::new(),
        }
    }
}

/// Sets in which frameworks store the names of their queues, and the prefix of the names.
const REGISTRIES: [(Framework, &str, &str); 3] = [
    (Rq, "rq:queues", "rq:queue:"),
    (Sidekiq, "queues", ""),
    (Resque, "resque:queues", ""),
];

/// A count: commands whose replies are added up.
struct Count {
    label: &'static str,
    key: String,
    commands: Vec<Words>,
}

impl Count {
    fn new(label: &'static str, command: &str, key: String) -> Self {
        Self {
            label,
            commands: vec![words![command, key]],
            key,
        }
    }
}

type Queues = BTreeMap<Framework, BTreeSet<String>>;

/// The queue that a key name indicates.
fn recognise(key: &str) -> Option<(Framework, String)> {
    let found = |framework, queue: &str| Some((framework, queue.to_owned()));
    if let Some(queue) = key.strip_prefix("rq:queue:") {
        return found(Rq, queue);
    }
    if let Some(queue) = key.strip_prefix("resque:queue:") {
        return found(Resque, queue);
    }
    if let Some(queue) = key.strip_prefix("dramatiq:") {
        let queue = queue.strip_suffix(".msgs")?;
        let queue = queue
            .strip_suffix(".DQ")
            .or(queue.strip_suffix(".XQ"))
            .unwrap_or(queue);
        return found(Dramatiq, queue);
    }
    for prefix in ["huey.redis.", "huey.schedule.", "huey.results."] {
        if let Some(queue) = key.strip_prefix(prefix) {
            return found(Huey, queue);
        }
    }
    if let Some(queue) = key
        .strip_suffix(":meta")
        .filter(|queue| queue.contains(':'))
    {
        return found(BullMq, queue);
    }
    if let Some(queue) = key.strip_suffix(":id").filter(|queue| queue.contains(':')) {
        return found(Bull, queue);
    }
    // Includes the application's prefix, such as laravel_database_.
    let (prefix, queue) = key.rsplit_once("queues:")?;
    if prefix.contains(':') || queue.is_empty() {
        return None;
    }
    let (queue, part) = queue.split_once(':').unwrap_or((queue, ""));
    let is_part = ["", "reserved", "delayed", "notify"].contains(&part);
    is_part.then(|| (Laravel, format!("{prefix}queues:{queue}")))
}

pub(crate) fn page(view: &mut View<'_>) -> Result<Page, NoPage> {
    let cursor = view.asked.query.text("cursor").to_owned();
    let (queues, next, examined) = find(view, &cursor)?;
    let database = view.database().to_string();
    let mut boards = Vec::new();
    let mut left = DASHBOARD_FRAMEWORK_QUEUES_MAX;
    for (framework, names) in &queues {
        let shown: Vec<&String> = names.iter().take(left).collect();
        left -= shown.len();
        if !shown.is_empty() {
            boards.push(board(view, *framework, &shown, &database)?);
        }
    }
    let body = html! {
        div.between { h1 { "Frameworks" } span.soft { "recognised by their key names" } }
        @if boards.is_empty() {
            p.empty {
                "No queues of Celery, RQ, BullMQ, Bull, Sidekiq, Resque, Dramatiq, Huey or Laravel were found here."
            }
        }
        @for board in &boards { (board) }
        div.pager {
            @if !cursor.is_empty() {
                a.button href=(url("/frameworks", &[("db", database.as_bytes())])) { "Back to the start" }
            }
            @if let Some(next) = &next {
                a.button href=(url("/frameworks", &[("db", database.as_bytes()), ("cursor", next.as_bytes())])) {
                    "Continue the search"
                }
            }
            span { @if next.is_none() { "No more names" } @else { (count(examined as i64)) " names examined" } }
        }
    };
    Ok(Page {
        title: "Frameworks".to_owned(),
        place: "frameworks",
        refresh_s: 10,
        body,
    })
}

/// Searches for queues in sets of names, and in the names of keys from a SCAN cursor on.
fn find(view: &mut View<'_>, cursor: &str) -> Result<(Queues, Option<String>, usize), NoPage> {
    let mut queues = Queues::new();
    let most = DASHBOARD_FRAMEWORK_QUEUES_MAX.to_string();
    for (framework, registry, prefix) in REGISTRIES {
        let reply = view.run(words!["SSCAN", registry, "0", "COUNT", most])?;
        for name in cursor_and_names(reply).1 {
            let name = String::from_utf8_lossy(&name).into_owned();
            if let Some(queue) = name.strip_prefix(prefix) {
                queues
                    .entry(framework)
                    .or_default()
                    .insert(queue.to_owned());
            }
        }
    }
    let mut next = Some(if cursor.is_empty() {
        "0".to_owned()
    } else {
        cursor.to_owned()
    });
    let mut examined = 0;
    let mut bindings = Vec::new();
    while let Some(cursor) = next.take() {
        let names = NAMES_PER_SCAN.to_string();
        let (cursor, found) =
            cursor_and_names(view.expect(words!["SCAN", cursor, "COUNT", names])?);
        next = cursor;
        examined += NAMES_PER_SCAN;
        for name in &found {
            let Ok(name) = std::str::from_utf8(name) else {
                continue;
            };
            if name.starts_with("_kombu.binding.")
                && bindings.len() < DASHBOARD_FRAMEWORK_QUEUES_MAX
            {
                bindings.push(words!["SSCAN", name, "0", "COUNT", most]);
            } else if let Some((framework, queue)) = recognise(name) {
                queues.entry(framework).or_default().insert(queue);
            }
        }
        if examined >= DASHBOARD_FRAMEWORK_NAMES_MAX {
            break;
        }
    }
    for reply in view.run_all(&bindings)? {
        for binding in cursor_and_names(reply).1 {
            if let Some(queue) = queue_of_binding(&String::from_utf8_lossy(&binding)) {
                queues.entry(Celery).or_default().insert(queue);
            }
        }
    }
    // BullMQ has both keys, Bull only one.
    if let Some(of_bullmq) = queues.get(&BullMq).cloned()
        && let Some(of_bull) = queues.get_mut(&Bull)
    {
        of_bull.retain(|queue| !of_bullmq.contains(queue));
    }
    Ok((queues, next, examined))
}

/// The queue of a kombu binding. `None` for bindings that workers use to communicate.
fn queue_of_binding(binding: &str) -> Option<String> {
    let queue = binding.rsplit(KOMBU_SEPARATOR).next()?;
    let is_internal =
        queue.is_empty() || queue.contains(".pidbox") || queue.starts_with("celeryev");
    (!is_internal).then(|| queue.to_owned())
}

/// The counts of a framework's queues, asked for together.
fn board(
    view: &mut View<'_>,
    framework: Framework,
    queues: &[&String],
    database: &str,
) -> Result<Markup, NoPage> {
    let shared = framework.shared();
    let rows: Vec<Vec<Count>> = queues.iter().map(|queue| framework.counts(queue)).collect();
    let all = || shared.iter().chain(rows.iter().flatten());
    let commands: Vec<Words> = all().flat_map(|one| one.commands.iter().cloned()).collect();
    let mut replies = view.run_all(&commands)?.into_iter();
    let mut numbers = all().map(|one| {
        let replies = replies.by_ref().take(one.commands.len());
        replies.map(|reply| number(&reply)).sum::<i64>()
    });
    let shared_numbers: Vec<i64> = numbers.by_ref().take(shared.len()).collect();
    let link = |key: &str| {
        url(
            "/queue",
            &[("db", database.as_bytes()), ("key", key.as_bytes())],
        )
    };
    let cell = |one: &Count, number: i64| {
        html! {
            td.number data-value=(number) {
                @if number == 0 { span.zero { "0" } } @else {
                    a.bad-text[["Failed", "Dead"].contains(&one.label)] href=(link(&one.key)) { (count(number)) }
                }
            }
        }
    };
    let rendered: Vec<Markup> = queues
        .iter()
        .zip(&rows)
        .map(|(queue, counts)| {
            let cells: Vec<Markup> = counts
                .iter()
                .map(|one| cell(one, numbers.next().unwrap_or(0)))
                .collect();
            html! { tr { td.name { (readable(queue.as_bytes())) } @for cell in &cells { (cell) } } }
        })
        .collect();
    Ok(html! {
        div.between {
            h2 { (framework.name()) }
            span.soft { @for (one, number) in shared.iter().zip(&shared_numbers) {
                span.fact {
                    (one.label) " " @if *number > 0 { a href=(link(&one.key)) { (count(*number)) } } @else { "0" }
                }
            } }
        }
        div.table { table data-sort="1" {
            thead { tr {
                th scope="col" { "Queue" }
                @for one in rows.first().into_iter().flatten() { th.number scope="col" { (one.label) } }
            } }
            tbody { @for row in &rendered { (row) } }
        } }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_frameworks_are_recognised() {
        for (key, framework, queue) in [
            ("rq:queue:high", Rq, "high"),
            ("resque:queue:mail", Resque, "mail"),
            ("dramatiq:default.msgs", Dramatiq, "default"),
            ("dramatiq:default.DQ.msgs", Dramatiq, "default"),
            ("huey.redis.app", Huey, "app"),
            ("huey.schedule.app", Huey, "app"),
            ("bull:video:meta", BullMq, "bull:video"),
            ("bull:video:id", Bull, "bull:video"),
            ("queues:default", Laravel, "queues:default"),
            (
                "laravel_database_queues:default:reserved",
                Laravel,
                "laravel_database_queues:default",
            ),
        ] {
            assert_eq!(recognise(key), Some((framework, queue.to_owned())), "{key}");
        }
        for other in [
            "jobs",
            "rq:job:1",
            "bull:video:1",
            "dramatiq:default",
            "rq:queues",
            "a:queues:b",
            "queues:",
            "meta",
        ] {
            assert_eq!(recognise(other), None, "{other}");
        }
    }

    #[test]
    fn a_binding_names_its_queue() {
        let binding = |queue: &str| format!("celery{KOMBU_SEPARATOR}{KOMBU_SEPARATOR}{queue}");
        assert_eq!(
            queue_of_binding(&binding("celery")),
            Some("celery".to_owned())
        );
        assert_eq!(
            queue_of_binding(&binding("celery@host.celery.pidbox")),
            None
        );
        assert_eq!(queue_of_binding(&binding("celeryev.1")), None);
    }
}
