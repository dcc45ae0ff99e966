//! The worked examples of the documents are run as written: the replies that `redis-cli` is shown
//! to print, page after page on one server in reading order, and the programs in `examples/`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub
)]

#[path = "../examples/gpu_jobs.rs"]
mod gpu_jobs;
#[path = "support/resp.rs"]
mod resp;
#[path = "support/server.rs"]
mod server;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use resp::{Connection, Value, Words};
use server::Server;

const GUIDE: &str = include_str!("../docs/start/task-queues.md");

/// The pages in reading order: README, then those that docs/README.md lists.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let list = read("docs/README.md");
    let links = list.split("](").skip(1);
    let listed = links.map(|rest| format!("docs/{}", rest.split(')').next().unwrap()));
    let paths = std::iter::once("README.md".to_owned()).chain(listed);
    paths
        .map(|path| (read(&path), path))
        .map(|(text, path)| (path, text))
        .collect()
}
/// The blocks of a document in a language.
fn blocks<'d>(document: &'d str, language: &str) -> Vec<&'d str> {
    let fence = format!("```{language}\n");
    let behind_each = document.split(fence.as_str()).skip(1);
    behind_each
        .map(|rest| rest.split("```").next().unwrap())
        .collect()
}

/// A reply as redis-cli shows it on a terminal.
fn shown(value: &Value) -> String {
    fn lines(value: &Value) -> Vec<String> {
        match value {
            Value::Line(b':', number) => {
                vec![format!("(integer) {}", String::from_utf8_lossy(number))]
            }
            Value::Line(_, text) => vec![String::from_utf8_lossy(text).into_owned()],
            Value::Blob(_, Some(bytes)) => {
                let text = String::from_utf8_lossy(bytes);
                vec![format!("\"{}\"", text.replace('"', "\\\""))]
            }
            Value::Blob(_, None) | Value::Aggregate(_, None) => vec!["(nil)".to_owned()],
            Value::Aggregate(_, Some(items)) if items.is_empty() => {
                vec!["(empty array)".to_owned()]
            }
            Value::Aggregate(_, Some(items)) => {
                let numbered = items.iter().enumerate().flat_map(|(number, item)| {
                    let mark = format!("{}) ", number + 1);
                    let indent = " ".repeat(mark.len());
                    let item_lines = lines(item).into_iter().enumerate();
                    item_lines
                        .map(|(at, line)| {
                            let front = if at == 0 { &mark } else { &indent };
                            format!("{front}{line}")
                        })
                        .collect::<Vec<_>>()
                });
                numbered.collect()
            }
        }
    }
    lines(value).join("\n")
}

/// The words of a shell line. Single quotes keep words together.
fn words(line: &str) -> Words {
    let mut words = Words::new();
    for (number, part) in line.split('\'').enumerate() {
        if number % 2 == 1 {
            words.push(part.as_bytes().to_vec());
        } else {
            words.extend(part.split_whitespace().map(|word| word.as_bytes().to_vec()));
        }
    }
    words
}

/// The tokens of leases in a text.
fn tokens(text: &str) -> Vec<&str> {
    let is_token =
        |word: &&str| word.len() == 16 && word.chars().all(|one| one.is_ascii_hexdigit());
    text.split(|one: char| !one.is_ascii_alphanumeric())
        .filter(is_token)
        .collect()
}

/// The steps of a console: commands, each with the reply below it, if any. Each `$ redis-cli` has
/// its own connection. Commands after `>` share their console's connection. The port of an example
/// is that of a server of the page.
fn steps(console: &str) -> Vec<(bool, String, String)> {
    let mut steps: Vec<(bool, String, String)> = Vec::new();
    let mut is_ours = false;
    for line in console.lines() {
        let alone = line.strip_prefix("$ redis-cli ");
        if let Some(command) = alone.or_else(|| line.strip_prefix("> ")) {
            let command = match command.strip_prefix("-p ") {
                Some(rest) => rest.split_once(' ').unwrap().1,
                None => command,
            };
            steps.push((alone.is_some(), command.to_owned(), String::new()));
            is_ours = true;
        } else if line.starts_with("$ ") {
            is_ours = false;
        } else if let Some((_, _, answer)) = steps.last_mut().filter(|_| is_ours) {
            answer.push_str(line);
            answer.push('\n');
        }
    }
    steps
}

/// Sends the lines of a console to a server, and compares the replies, except for tokens of leases.
/// Without a reply, a session's command is only sent, and a `redis-cli` command is meant for
/// another server.
fn play(console: &str, server: &Server) -> usize {
    let mut renamed: Vec<(String, String)> = Vec::new();
    let rename = |text: &str, renamed: &[(String, String)]| {
        let renamed = renamed.iter();
        renamed.fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    };
    let mut session = Connection::open(server.address()).unwrap();
    let mut count = 0;
    for (is_alone, line, expected) in steps(console) {
        if is_alone && expected.is_empty() {
            continue;
        }
        let line = rename(&line, &renamed);
        let reply = match is_alone {
            true => Connection::open(server.address())
                .unwrap()
                .command(&words(&line)),
            false => session.command(&words(&line)),
        };
        let reply = reply.unwrap();
        if expected.is_empty() {
            assert!(
                !matches!(reply, Value::Line(b'-', _)),
                "{line}: {}",
                shown(&reply)
            );
            continue;
        }
        let reply = shown(&reply);
        for (from, to) in tokens(&expected).into_iter().zip(tokens(&reply)) {
            renamed.push((from.to_owned(), to.to_owned()));
        }
        assert_eq!(reply, rename(expected.trim(), &renamed), "redis-cli {line}");
        count += 1;
    }
    count
}

#[test]
fn what_redis_cli_is_shown_to_answer_is_what_it_answers_page_after_page() {
    let server = Server::start();
    let mut played = Vec::new();
    for (path, text) in pages() {
        let consoles = blocks(&text, "console");
        let count: usize = consoles.iter().map(|console| play(console, &server)).sum();
        if count > 0 {
            played.push((path, count));
        }
    }
    let of = |page: &str| played.iter().find(|(path, _)| path.ends_with(page));
    for (page, least) in [
        ("README.md", 7),
        ("quick-start.md", 8),
        ("task-queues.md", 6),
        ("security.md", 1),
    ] {
        let found = of(page).map_or(0, |(_, count)| *count);
        assert!(found >= least, "{page}: {found} examples; {played:?}");
    }
}

#[test]
fn code_in_the_guide_is_that_of_the_examples() {
    for (language, file) in [
        ("python", include_str!("../examples/gpu_jobs.py")),
        ("rust", include_str!("../examples/gpu_jobs.rs")),
    ] {
        let blocks = blocks(GUIDE, language);
        assert!(!blocks.is_empty(), "{language}");
        for block in blocks {
            assert!(
                file.contains(block.trim()),
                "differs from the example:\n{block}"
            );
        }
    }
}

const DONE: [&str; 3] = ["render-c.json", "render-b.json", "train-a.json"];

#[test]
fn the_example_in_rust_does_its_jobs() {
    for protocol in [2, 3] {
        let server = Server::start();
        let mut connection = server.redis(protocol);
        assert_eq!(gpu_jobs::jobs(&mut connection).unwrap(), DONE);
        assert_eq!(server.connect().run("EXISTS gpu"), ":0\r\n");
    }
}

#[test]
fn the_example_in_python_does_its_jobs() {
    let python = std::env::var("QUOIN_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_client = Command::new(&python)
        .args(["-c", "import redis"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !has_client {
        // Written past the capture of a passing test's output.
        let _ = writeln!(
            std::io::stderr(),
            "examples/gpu_jobs.py is not run: {python} with redis-py is not installed \
             (QUOIN_TEST_PYTHON names another)"
        );
        return;
    }
    let server = Server::start();
    let output = Command::new(&python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/gpu_jobs.py"))
        .arg(server.address().port().to_string())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let expected = format!(
        "a small machine\ndone: {}\ndone: {}\na large machine\ndone: {}\nleft: 0\n",
        DONE[0], DONE[1], DONE[2]
    );
    assert_eq!(
        text,
        expected,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
