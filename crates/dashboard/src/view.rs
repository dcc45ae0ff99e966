//! What a page is made from: the request, the session, and commands on its connection.

use std::collections::HashMap;

use maud::Markup;

use quoin_client::ClientError;
use quoin_resp::wire::reply_reader::Value;

use crate::history::Sample;
use crate::host::Host;
use crate::request::Asked;
use crate::sessions::{Connection, Notice, Session};

/// Why there is no page.
#[derive(Debug)]
pub(crate) enum NoPage {
    /// The connection of the session is gone.
    Lost,
    /// The server refuses a command.
    Refused(String),
    /// There is no such page, or no such key.
    Missing(String),
}

impl From<ClientError> for NoPage {
    fn from(_: ClientError) -> Self {
        NoPage::Lost
    }
}

/// A page.
pub(crate) struct Page {
    pub(crate) title: String,
    /// The place in the navigation that it belongs to.
    pub(crate) place: &'static str,
    /// Seconds after which a visible page asks again.
    pub(crate) refresh_s: u32,
    pub(crate) body: Markup,
}

/// What comes of a request.
pub(crate) enum Answer {
    Page(Page),
    /// To a path of the dashboard, after a POST.
    See(String),
}

/// A command with its arguments.
pub(crate) type Words = Vec<Vec<u8>>;

/// A command from words.
macro_rules! words {
    ($($word:expr),+ $(,)?) => {
        vec![$(AsRef::<[u8]>::as_ref(&$word).to_vec()),+]
    };
}
pub(crate) use words;

/// What a page is made from.
pub(crate) struct View<'v> {
    pub(crate) asked: &'v Asked,
    pub(crate) session: &'v Session,
    pub(crate) connection: &'v mut Connection,
    pub(crate) host: &'v dyn Host,
    pub(crate) history: &'v [Sample],
    pub(crate) now_ms: i64,
}

impl View<'_> {
    /// Runs a command. An error of the server is a reply.
    pub(crate) fn run(&mut self, words: Words) -> Result<Value, NoPage> {
        Ok(self.connection.client.call(&words)?)
    }

    /// Runs a command that must not fail.
    pub(crate) fn expect(&mut self, words: Words) -> Result<Value, NoPage> {
        let reply = self.run(words)?;
        match reply.error_text() {
            Some(line) => Err(NoPage::Refused(line.into_owned())),
            None => Ok(reply),
        }
    }

    /// Runs commands together.
    pub(crate) fn run_all(&mut self, commands: &[Words]) -> Result<Vec<Value>, NoPage> {
        let client = &mut self.connection.client;
        for words in commands {
            client.queue(words);
        }
        client.send()?;
        let replies = commands.iter().map(|_| client.read());
        Ok(replies.collect::<Result<_, _>>()?)
    }

    /// Selects the database of the request.
    pub(crate) fn select(&mut self) -> Result<(), NoPage> {
        let database = self.database();
        if database != self.connection.database {
            self.expect(words!["SELECT", database.to_string()])?;
            self.connection.database = database;
        }
        Ok(())
    }

    /// The database of the request.
    pub(crate) fn database(&self) -> u32 {
        self.asked.query.number("db").unwrap_or(0)
    }

    /// The key of the request.
    pub(crate) fn key(&self) -> Vec<u8> {
        self.asked.query.bytes("key").to_vec()
    }

    /// Whether the user's rights allow a command. Only for what is shown: the server checks again.
    pub(crate) fn may(&self, words: &[&[u8]]) -> bool {
        self.host.permits(self.session.user.as_bytes(), words)
    }

    /// Fields of sections of INFO. The error is the server's.
    pub(crate) fn info(&mut self, sections: &[&str]) -> Result<Result<Info, String>, NoPage> {
        let mut command = words!["INFO"];
        command.extend(sections.iter().map(|section| section.as_bytes().to_vec()));
        let reply = self.run(command)?;
        if let Some(line) = reply.error_text() {
            return Ok(Err(line.into_owned()));
        }
        let text = String::from_utf8_lossy(reply.bytes().unwrap_or_default()).into_owned();
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        let fields = pairs.map(|(name, value)| (name.to_owned(), value.trim_end().to_owned()));
        Ok(Ok(Info(fields.collect())))
    }

    /// Has the next page show what an action did.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.connection.notice = Some(Notice {
            is_error: false,
            text: text.into(),
        });
    }

    /// Has the next page show why an action did nothing.
    pub(crate) fn note_error(&mut self, text: impl Into<String>) {
        self.connection.notice = Some(Notice {
            is_error: true,
            text: text.into(),
        });
    }
}

/// Fields of INFO.
pub(crate) struct Info(HashMap<String, String>);

impl Info {
    /// A field; empty if it is missing.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// A number; 0 if it is missing.
    pub(crate) fn number(&self, name: &str) -> i64 {
        self.text(name).parse().unwrap_or(0)
    }

    /// A number of bytes; 0 if it is missing.
    pub(crate) fn bytes(&self, name: &str) -> f64 {
        self.text(name).parse().unwrap_or(0.0)
    }

    /// The fields whose name begins so, with the rest of the name.
    pub(crate) fn beginning(&self, with: &str) -> Vec<(&str, &str)> {
        let mut found: Vec<_> = self
            .0
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix(with)?, value.as_str())))
            .collect();
        found.sort_unstable();
        found
    }
}

/// Names and values that alternate, as in the reply of XINFO or TASK.INFO.
pub(crate) struct Pairs<'r>(&'r [Value]);

impl<'r> Pairs<'r> {
    pub(crate) fn of(reply: &'r Value) -> Self {
        Self(reply.items().unwrap_or_default())
    }

    /// The value of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&'r Value> {
        let mut pairs = self.0.chunks_exact(2);
        pairs.find_map(|pair| match pair {
            [key, value] if text(key) == name => Some(value),
            _ => None,
        })
    }

    pub(crate) fn number(&self, name: &str) -> i64 {
        self.get(name).map_or(0, number)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.get(name).map(text).unwrap_or_default()
    }
}

/// A reply as text, whatever it is.
pub(crate) fn text(reply: &Value) -> String {
    match reply {
        Value::Line(_, text) | Value::Blob(_, Some(text)) => {
            String::from_utf8_lossy(text).into_owned()
        }
        Value::Blob(_, None) | Value::Aggregate(..) => String::new(),
    }
}

/// A reply as a number; 0 if it is none.
pub(crate) fn number(reply: &Value) -> i64 {
    reply
        .integer()
        .or_else(|| text(reply).parse().ok())
        .unwrap_or(0)
}

/// The parts of an array.
pub(crate) fn items(reply: &Value) -> &[Value] {
    reply.items().unwrap_or_default()
}

impl<'f> FromIterator<(&'f str, &'f str)> for Info {
    fn from_iter<I: IntoIterator<Item = (&'f str, &'f str)>>(fields: I) -> Self {
        let fields = fields.into_iter();
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self(fields.collect())
    }
}
