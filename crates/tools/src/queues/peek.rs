//! `quoin queues peek`: shows what is in a queue, without taking it.

use std::io::Write;

use serde_json::{Map, Value as Json, json};

use quoin_client::Client;
use quoin_queues::{Kind, Pairs, State, by_cursor, by_rank, expect, items, number, text, words};
use quoin_resp::wire::reply_reader::Value;

use super::error::QueuesError;
use super::rows::{put_bytes, shown};

/// What to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Peek {
    /// Of a task queue, the tasks of this state.
    pub(super) state: Option<State>,
    /// Where the page begins. Empty for the beginning.
    pub(super) cursor: String,
    pub(super) count: i64,
    pub(super) is_json: bool,
}

/// An element: its fields for JSON, and a line before its value.
struct Element {
    fields: Map<String, Json>,
    about: String,
    value: Vec<u8>,
}

impl Element {
    fn new(about: String, value: Vec<u8>) -> Self {
        Self {
            fields: Map::new(),
            about,
            value,
        }
    }

    fn with(mut self, name: &str, value: Json) -> Self {
        self.fields.insert(name.to_owned(), value);
        self
    }

    fn with_value(mut self) -> Self {
        put_bytes(&mut self.fields, "value", &self.value);
        self
    }
}

/// Writes a page of a queue. Returns the cursor of the next one, if there is one.
pub(super) fn peek(
    client: &mut Client,
    key: &[u8],
    kind: Kind,
    peek: &Peek,
    out: &mut impl Write,
) -> Result<Option<String>, QueuesError> {
    if kind == Kind::TaskQueue {
        return tasks(client, key, peek, out);
    }
    if peek.state.is_some() {
        return Err(QueuesError::NotDone(format!(
            "a {} has no states: omit --state",
            kind.name()
        )));
    }
    let (elements, next) = match kind {
        Kind::List => list(client, key, peek)?,
        Kind::Stream => entries(client, key, peek)?,
        Kind::TaskQueue | Kind::PriorityQueue | Kind::SortedSet => scored(client, key, kind, peek)?,
    };
    for element in elements {
        write(&element, peek.is_json, out)?;
    }
    Ok(next)
}

fn write(element: &Element, is_json: bool, out: &mut impl Write) -> Result<(), QueuesError> {
    match is_json {
        true => writeln!(out, "{}", Json::Object(element.fields.clone()))?,
        false => writeln!(out, "{}  {}", element.about, shown(&element.value))?,
    }
    Ok(())
}

type Elements = (Vec<Element>, Option<String>);

fn list(client: &mut Client, key: &[u8], peek: &Peek) -> Result<Elements, QueuesError> {
    let length = number(&expect(client, &words!["LLEN", key])?);
    let from: i64 = match peek.cursor.as_str() {
        "" => 0,
        cursor => cursor.parse().map_err(|_| wrong_cursor(cursor))?,
    };
    let from = from.max(0);
    let after = from.saturating_add(peek.count);
    let (first, last) = (from.to_string(), (after - 1).to_string());
    let reply = expect(client, &words!["LRANGE", key, first, last])?;
    let values = items(&reply).iter().enumerate();
    let elements = values.map(|(place, value)| {
        let index = from.saturating_add(i64::try_from(place).unwrap_or(i64::MAX));
        let value = value.bytes().unwrap_or_default().to_vec();
        let element = Element::new(index.to_string(), value);
        element.with("index", json!(index)).with_value()
    });
    let next = (after < length).then(|| after.to_string());
    Ok((elements.collect(), next))
}

fn wrong_cursor(cursor: &str) -> QueuesError {
    QueuesError::NotDone(format!("--cursor {cursor}: for a list it is an index"))
}

fn scored(
    client: &mut Client,
    key: &[u8],
    kind: Kind,
    peek: &Peek,
) -> Result<Elements, QueuesError> {
    let (page, name) = match kind {
        Kind::SortedSet => {
            let length = number(&expect(client, &words!["ZCARD", key])?);
            let page = by_rank(client, key, &peek.cursor, peek.count, length)?;
            (page, "score")
        }
        _ => (
            by_cursor(client, key, &peek.cursor, peek.count)?,
            "priority",
        ),
    };
    let elements = page.rows.into_iter().map(|(value, score)| {
        let number = score.parse::<f64>().ok();
        let number = number.filter(|number| number.is_finite());
        // Text that JSON cannot express as a number stays text.
        let number = number.map_or_else(|| json!(score), |number| json!(number));
        Element::new(score, value).with(name, number).with_value()
    });
    Ok((elements.collect(), page.next))
}

/// The oldest entries first, after the one that the cursor names.
fn entries(client: &mut Client, key: &[u8], peek: &Peek) -> Result<Elements, QueuesError> {
    let from = match peek.cursor.as_str() {
        "" => "-".to_owned(),
        cursor => format!("({cursor}"),
    };
    let count = peek.count.to_string();
    let reply = expect(client, &words!["XRANGE", key, from, "+", "COUNT", count])?;
    let entries = items(&reply);
    let elements = entries.iter().filter_map(|entry| match items(entry) {
        [id, fields] => Some(entry_of(text(id), items(fields))),
        _ => None,
    });
    let elements: Vec<Element> = elements.collect();
    let is_full = i64::try_from(elements.len()).unwrap_or(i64::MAX) >= peek.count;
    let last = entries.last().and_then(|entry| items(entry).first());
    Ok((elements, last.filter(|_| is_full).map(text)))
}

fn entry_of(id: String, pairs: &[Value]) -> Element {
    let mut fields = Vec::new();
    let mut line = Vec::new();
    for pair in pairs.chunks_exact(2) {
        let [name, value] = pair else { continue };
        let (name, value) = (
            name.bytes().unwrap_or_default(),
            value.bytes().unwrap_or_default(),
        );
        if !line.is_empty() {
            line.push(b' ');
        }
        line.extend([name, b"=", value].concat());
        // Names may repeat, so this is no object.
        let mut field = Map::new();
        put_bytes(&mut field, "name", name);
        put_bytes(&mut field, "value", value);
        fields.push(Json::Object(field));
    }
    Element::new(id.clone(), line)
        .with("id", json!(id))
        .with("fields", Json::Array(fields))
}

/// Tasks with their payloads, one after another, because payloads may be large.
fn tasks(
    client: &mut Client,
    key: &[u8],
    peek: &Peek,
    out: &mut impl Write,
) -> Result<Option<String>, QueuesError> {
    let state = peek.state.unwrap_or(State::Ready);
    let page = quoin_queues::tasks(client, key, state, &peek.cursor, peek.count)?;
    for listed in &page.rows {
        let Some(id) = Pairs::of(listed).get("id").and_then(Value::bytes) else {
            continue;
        };
        let got = expect(client, &words!["TASK.GET", key, id])?;
        // It may be gone by now.
        if !got.is_null() {
            write(&task(&Pairs::of(&got)), peek.is_json, out)?;
        }
    }
    Ok(page.next)
}

fn task(task: &Pairs<'_>) -> Element {
    let bytes = |name: &str| task.get(name).and_then(Value::bytes);
    let id = bytes("id").unwrap_or_default();
    let state = task.text("state").to_lowercase();
    let mut about = format!("{}  {state}  priority {}", shown(id), task.text("priority"));
    about.push_str(&format!("  tries {}", task.number("tries")));
    for note in ["worker", "reason", "progress"] {
        if let Some(text) = bytes(note) {
            about.push_str(&format!("  {note} {}", shown(text)));
        }
    }
    let mut element = Element::new(about, bytes("payload").unwrap_or_default().to_vec());
    let fields = &mut element.fields;
    put_bytes(fields, "id", id);
    put_bytes(fields, "payload", &element.value);
    for note in ["worker", "reason", "progress"] {
        match bytes(note) {
            Some(text) => put_bytes(fields, note, text),
            None => drop(fields.insert(note.to_owned(), Json::Null)),
        }
    }
    let needs = task.get("needs").map(items).unwrap_or_default();
    let needs = needs.chunks_exact(2).filter_map(|pair| match pair {
        [name, amount] => Some((text(name), json!(text(amount).parse::<f64>().ok()))),
        _ => None,
    });
    let needs = Json::Object(needs.collect());
    let time = |name: &str| Some(task.number(name)).filter(|at_ms| *at_ms >= 0);
    element
        .with("state", json!(state))
        .with("priority", json!(task.text("priority").parse::<f64>().ok()))
        .with("tries", json!(task.number("tries")))
        .with("maxtries", json!(task.number("maxtries")))
        .with("needs", needs)
        .with("at_ms", json!(time("at-ms")))
        .with("expires_ms", json!(time("expires-ms")))
}
