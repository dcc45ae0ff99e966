//! Rows of the table of queues: their cells, their order, and how they are gathered from a server.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde_json::{Map, Value as Json, json};

use quoin_base::clock::{Clock, SystemClock};
use quoin_base::glob::{self, Case};
use quoin_base::secret::hex;
use quoin_base::size::{about, duration};
use quoin_client::{Client, ClientError};
use quoin_queues::{Activity, Kind, Queue, Wanted, activities, heads, items, number, read_queues};

/// Maximum number of queues whose activity is requested.
const ACTIVE_MAX: usize = 1_024;

/// The activity of queues by database and name.
pub(crate) type ActivityOf = HashMap<Vec<u8>, Activity>;

/// A queue with what is known about it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) queue: Queue,
    /// Since when its first element exists, in Unix milliseconds.
    pub(crate) since_ms: Option<i64>,
    /// Its activity, if the server counts it.
    pub(crate) activity: Option<Activity>,
}

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Name,
    Type,
    Ready,
    Leased,
    Delayed,
    Dead,
    In,
    Out,
    Age,
    Waiting,
    Retries,
    Deaths,
}

impl Column {
    /// From left to right.
    pub(crate) const ALL: [Column; 12] = [
        Column::Name,
        Column::Type,
        Column::Ready,
        Column::Leased,
        Column::Delayed,
        Column::Dead,
        Column::In,
        Column::Out,
        Column::Age,
        Column::Waiting,
        Column::Retries,
        Column::Deaths,
    ];

    /// Above the column.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Column::Name => "QUEUE",
            Column::Type => "TYPE",
            Column::Ready => "READY",
            Column::Leased => "LEASED",
            Column::Delayed => "DELAYED",
            Column::Dead => "DEAD",
            Column::In => "IN/S",
            Column::Out => "OUT/S",
            Column::Age => "AGE",
            Column::Waiting => "WAITING",
            Column::Retries => "RETRIES",
            Column::Deaths => "DEATHS",
        }
    }

    /// For `--sort`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Column::Name => "name",
            Column::Type => "type",
            Column::Ready => "ready",
            Column::Leased => "leased",
            Column::Delayed => "delayed",
            Column::Dead => "dead",
            Column::In => "in",
            Column::Out => "out",
            Column::Age => "age",
            Column::Waiting => "waiting",
            Column::Retries => "retries",
            Column::Deaths => "deaths",
        }
    }

    /// The column that `--sort` names so.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|column| column.name() == name)
    }

    /// Whether it is a text, not a figure.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Column::Name | Column::Type)
    }
}

/// The order of rows: texts ascending, figures descending, unknown ones last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) column: Column,
    pub(crate) is_reversed: bool,
}

impl Default for Order {
    fn default() -> Self {
        Self {
            column: Column::Ready,
            is_reversed: false,
        }
    }
}

impl Order {
    pub(crate) fn sort(self, rows: &mut [Row]) {
        rows.sort_by(|one, other| {
            let by_name = || one.queue.name.cmp(&other.queue.name);
            self.compare(one, other).then_with(by_name)
        });
    }

    fn compare(self, one: &Row, other: &Row) -> Ordering {
        let turned = |order: Ordering| match self.is_reversed {
            true => order.reverse(),
            false => order,
        };
        match self.column {
            Column::Name => turned(one.queue.name.cmp(&other.queue.name)),
            Column::Type => turned(one.queue.kind.cmp(&other.queue.kind)),
            column => match (one.figure(column), other.figure(column)) {
                (Some(one), Some(other)) => turned(other.total_cmp(&one)),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => Ordering::Equal,
            },
        }
    }
}

impl Row {
    /// The sort key of a column of figures.
    fn figure(&self, column: Column) -> Option<f64> {
        let figures = &self.queue.figures;
        let activity = self.activity.as_ref();
        let whole = |number: Option<i64>| number.map(|number| number as f64);
        match column {
            Column::Name | Column::Type => None,
            Column::Ready => whole(figures.ready),
            Column::Leased => whole(figures.in_work),
            Column::Delayed => whole(figures.delayed),
            Column::Dead => whole(figures.dead),
            Column::In => activity.map(|activity| activity.in_per_second),
            Column::Out => activity.map(|activity| activity.out_per_second),
            // The oldest has the least time.
            Column::Age => self.since_ms.map(|since_ms| -(since_ms as f64)),
            Column::Waiting => whole(activity.map(|activity| activity.waiting)),
            Column::Retries => whole(activity.map(|activity| activity.retries)),
            Column::Deaths => whole(activity.map(|activity| activity.deaths)),
        }
    }

    /// The text of a cell; empty if it is unknown.
    pub(crate) fn cell(&self, column: Column, now_ms: i64) -> String {
        match column {
            Column::Name => shown(&self.queue.name),
            Column::Type => self.queue.kind.type_name().to_owned(),
            Column::Age => self.age_ms(now_ms).map(duration).unwrap_or_default(),
            column => self.figure(column).map(about).unwrap_or_default(),
        }
    }

    /// How long its first element has existed, in milliseconds. `None` if its time is in the
    /// future, as in a sorted set of scheduled work.
    fn age_ms(&self, now_ms: i64) -> Option<i64> {
        let age_ms = now_ms.saturating_sub(self.since_ms?);
        (age_ms >= 0).then_some(age_ms)
    }

    /// Further remarks about it.
    pub(crate) fn note(&self) -> String {
        let figures = &self.queue.figures;
        if let Some(refusal) = &figures.refusal {
            return shown(refusal.as_bytes());
        }
        match (figures.is_paused, figures.groups) {
            (true, _) => "paused".to_owned(),
            (false, Some(groups)) => format!("{} groups, lag {}", groups.count, groups.lag),
            (false, None) => String::new(),
        }
    }

    /// As a JSON object. Unknown values are null.
    pub(crate) fn json(&self, now_ms: i64) -> Json {
        let figures = &self.queue.figures;
        let activity = self.activity.as_ref();
        let mut fields = Map::new();
        put_bytes(&mut fields, "key", &self.queue.name);
        let more = [
            ("type", json!(self.queue.kind.type_name())),
            ("ready", json!(figures.ready)),
            ("leased", json!(figures.in_work)),
            ("delayed", json!(figures.delayed)),
            ("dead", json!(figures.dead)),
            ("held", json!(figures.held)),
            ("paused", json!(figures.is_paused)),
            ("groups", json!(figures.groups.map(|groups| groups.count))),
            ("lag", json!(figures.groups.map(|groups| groups.lag))),
            ("age_ms", json!(self.age_ms(now_ms))),
            ("in", json!(activity.map(|activity| activity.elements_in))),
            ("out", json!(activity.map(|activity| activity.elements_out))),
            ("in_per_second", json!(self.figure(Column::In))),
            ("out_per_second", json!(self.figure(Column::Out))),
            ("waiting", json!(activity.map(|activity| activity.waiting))),
            ("retries", json!(activity.map(|activity| activity.retries))),
            ("deaths", json!(activity.map(|activity| activity.deaths))),
            ("error", json!(figures.refusal)),
        ];
        fields.extend(more.map(|(name, value)| (name.to_owned(), value)));
        Json::Object(fields)
    }
}

/// Bytes as a JSON field: a string, or if they are not UTF-8, hexadecimal digits in a separate
/// field.
pub(crate) fn put_bytes(fields: &mut Map<String, Json>, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => fields.insert(name.to_owned(), json!(text)),
        Err(_) => fields.insert(format!("{name}_hex"), json!(hex(bytes))),
    };
}

/// Bytes on one line of a terminal, without control characters.
pub(crate) fn shown(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => bytes.escape_ascii().to_string(),
    }
}

/// The server's time, in Unix milliseconds. It judges ages; the machine's clock may be another.
pub(crate) fn now_ms(client: &mut Client) -> Result<i64, ClientError> {
    let reply = client.call(&["TIME"])?;
    Ok(match items(&reply) {
        [seconds, micros] => number(seconds)
            .saturating_mul(1_000)
            .saturating_add(number(micros) / 1_000),
        _ => SystemClock.now_ms(),
    })
}

/// The activity of the matching queues, as far as the server counts it.
pub(crate) fn activity_of(
    client: &mut Client,
    database: u32,
    wanted: &Wanted,
) -> Result<ActivityOf, ClientError> {
    let active = activities(client, ACTIVE_MAX)?.unwrap_or_default();
    let fits = |activity: &Activity| {
        let fits_pattern = || {
            wanted.pattern.is_empty()
                || glob::matches(&wanted.pattern, &activity.name, Case::Sensitive)
        };
        activity.database == database
            && wanted.kind.is_none_or(|kind| kind == activity.kind)
            && fits_pattern()
    };
    let active = active.into_iter().filter(fits);
    Ok(active
        .map(|activity| (activity.name.clone(), activity))
        .collect())
}

/// The rows of these queues.
pub(crate) fn gather(
    client: &mut Client,
    keys: Vec<(Vec<u8>, Kind)>,
    active: &ActivityOf,
) -> Result<Vec<Row>, ClientError> {
    let heads = heads(client, &keys)?;
    let queues = read_queues(client, keys)?;
    let rows = queues.into_iter().zip(heads).map(|(queue, since_ms)| Row {
        activity: active
            .get(&queue.name)
            .filter(|activity| activity.kind == queue.kind)
            .cloned(),
        since_ms,
        queue,
    });
    Ok(rows.collect())
}

#[cfg(test)]
pub(crate) mod testing {
    use std::io::{BufReader, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use super::*;
    use quoin_client::Address;
    use quoin_queues::{Figures, text};
    use quoin_resp::wire::reply_reader::read_reply;

    /// Answers the tools' requests like a server with these active queues and `lists` lists,
    /// `list:0` and so on, in database 0.
    pub(crate) struct ActiveServer {
        pub(crate) lists: usize,
        pub(crate) active: Vec<Activity>,
    }

    impl ActiveServer {
        /// Starts it for one client.
        pub(crate) fn start(self) -> Client {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = format!("redis://{}", listener.local_addr().unwrap());
            thread::spawn(move || self.serve(listener.accept().unwrap().0));
            Client::connect(&Address::parse(&address).unwrap()).unwrap()
        }

        fn serve(&self, mut stream: TcpStream) {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            while let Ok(request) = read_reply(&mut reader) {
                let words: Vec<String> = items(&request).iter().map(text).collect();
                let answer = self.answer(&words);
                if stream.write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
        }

        fn answer(&self, words: &[String]) -> String {
            let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
            match words[0].as_str() {
                "TIME" => format!("*2\r\n{}{}", bulk("100"), bulk("0")),
                "TYPE" => "+list\r\n".to_owned(),
                "LLEN" => ":1\r\n".to_owned(),
                "SCAN" => {
                    let from: usize = words[1].parse().unwrap();
                    let to = (from + words[3].parse::<usize>().unwrap()).min(self.lists);
                    let next = if to == self.lists { 0 } else { to };
                    let names: String = (from..to).map(|n| bulk(&format!("list:{n}"))).collect();
                    let next = bulk(&next.to_string());
                    format!("*2\r\n{next}*{}\r\n{names}", to - from)
                }
                "QUEUE.TOP" => {
                    let maps = self.active.iter().map(|one| {
                        let name = std::str::from_utf8(&one.name).unwrap();
                        format!(
                            "*20\r\n+db\r\n:0\r\n+key\r\n{}+type\r\n+{}\r\n+in\r\n:{}\r\n+out\r\n:{}\r\n\
                             +retries\r\n:{}\r\n+deaths\r\n:{}\r\n+in-per-second\r\n{}\
                             +out-per-second\r\n{}+waiting\r\n:{}\r\n",
                            bulk(name),
                            one.kind.type_name(),
                            one.elements_in,
                            one.elements_out,
                            one.retries,
                            one.deaths,
                            bulk(&one.in_per_second.to_string()),
                            bulk(&one.out_per_second.to_string()),
                            one.waiting
                        )
                    });
                    format!("*{}\r\n{}", self.active.len(), maps.collect::<String>())
                }
                _ => "-ERR unknown command\r\n".to_owned(),
            }
        }
    }

    /// A row with `ready` elements.
    pub(crate) fn row(name: &str, kind: Kind, ready: i64) -> Row {
        Row {
            queue: Queue {
                name: name.into(),
                kind,
                figures: Figures {
                    ready: Some(ready),
                    ..Figures::default()
                },
            },
            since_ms: None,
            activity: None,
        }
    }

    /// The activity of a queue.
    pub(crate) fn activity(name: &str, kind: Kind) -> Activity {
        Activity {
            database: 0,
            name: name.into(),
            kind,
            elements_in: 100,
            elements_out: 90,
            retries: 7,
            deaths: 3,
            in_per_second: 2.5,
            out_per_second: 12_345.0,
            waiting: 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{activity, row};
    use super::*;

    fn names(order: Order, rows: &[Row]) -> Vec<String> {
        let mut rows = rows.to_vec();
        order.sort(&mut rows);
        rows.iter().map(|row| shown(&row.queue.name)).collect()
    }

    #[test]
    fn figures_begin_with_the_largest_and_unknown_ones_are_last() {
        let mut unknown = row("c", Kind::List, 0);
        unknown.queue.figures.ready = None;
        let rows = [row("a", Kind::List, 1), row("b", Kind::Stream, 2), unknown];
        let order = |column, is_reversed| Order {
            column,
            is_reversed,
        };
        assert_eq!(names(order(Column::Ready, false), &rows), ["b", "a", "c"]);
        assert_eq!(names(order(Column::Ready, true), &rows), ["a", "b", "c"]);
        assert_eq!(names(order(Column::Name, false), &rows), ["a", "b", "c"]);
        assert_eq!(names(order(Column::Name, true), &rows), ["c", "b", "a"]);
        assert_eq!(names(order(Column::Type, true), &rows), ["b", "a", "c"]);
    }

    #[test]
    fn the_oldest_comes_first_by_age() {
        let mut rows = [
            row("new", Kind::Stream, 1),
            row("old", Kind::Stream, 1),
            row("none", Kind::List, 1),
        ];
        rows[0].since_ms = Some(2_000);
        rows[1].since_ms = Some(1_000);
        let order = Order {
            column: Column::Age,
            is_reversed: false,
        };
        assert_eq!(names(order, &rows), ["old", "new", "none"]);
        assert_eq!(rows[1].cell(Column::Age, 61_000), "1 min");
        assert_eq!(rows[2].cell(Column::Age, 61_000), "");
        assert_eq!(rows[0].cell(Column::Age, 1_999), "");
    }

    #[test]
    fn what_the_server_does_not_count_is_blank() {
        let mut one = row("a", Kind::TaskQueue, 1);
        for column in [Column::In, Column::Waiting, Column::Deaths, Column::Delayed] {
            assert_eq!(one.cell(column, 0), "");
        }
        assert_eq!(one.json(0)["in_per_second"], Json::Null);
        one.activity = Some(activity("a", Kind::TaskQueue));
        assert_eq!(one.cell(Column::In, 0), "2.5");
        assert_eq!(one.cell(Column::Out, 0), "12.3 k");
        assert_eq!(one.cell(Column::Deaths, 0), "3");
        assert_eq!(one.json(0)["waiting"], json!(4));
    }

    #[test]
    fn names_cannot_steer_the_terminal() {
        assert_eq!(shown(b"a\x1b[2Jb"), "a\\x1b[2Jb");
        assert_eq!(shown("grün".as_bytes()), "grün");
        let mut fields = Map::new();
        put_bytes(&mut fields, "key", b"\xff\x00");
        assert_eq!(fields["key_hex"], json!("ff00"));
    }

    #[test]
    fn every_column_can_be_sorted_by() {
        for column in Column::ALL {
            assert_eq!(Column::of_name(column.name()), Some(column));
        }
    }
}
