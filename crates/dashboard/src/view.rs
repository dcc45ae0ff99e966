//! What a page is built from: the request, the session, and commands on its connection.

use std::collections::HashMap;

use maud::Markup;

use quoin_client::{Client, ClientError};
pub(crate) use quoin_queues::{Pairs, Words, items, number, text, words};
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
    /// The page or the key does not exist.
    Missing(String),
}

impl From<ClientError> for NoPage {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused { reply, .. } => NoPage::Refused(reply),
            ClientError::Connect { .. } | ClientError::Lost { .. } => NoPage::Lost,
        }
    }
}

/// A page.
pub(crate) struct Page {
    pub(crate) title: String,
    /// The id of its navigation entry.
    pub(crate) place: &'static str,
    /// Interval in seconds at which a visible page refreshes.
    pub(crate) refresh_s: u32,
    pub(crate) body: Markup,
}

/// The result of a request.
pub(crate) enum Answer {
    Page(Page),
    /// To a path of the dashboard, after a POST.
    See(String),
}

/// What a page is built from.
pub(crate) struct View<'v> {
    pub(crate) asked: &'v Asked,
    pub(crate) session: &'v Session,
    pub(crate) connection: &'v mut Connection,
    pub(crate) host: &'v dyn Host,
    pub(crate) history: &'v [Sample],
    pub(crate) now_ms: i64,
}

impl View<'_> {
    /// Its connection.
    pub(crate) fn client(&mut self) -> &mut Client {
        &mut self.connection.client
    }

    /// Runs a command. An error of the server is a reply.
    pub(crate) fn run(&mut self, words: Words) -> Result<Value, NoPage> {
        Ok(self.client().call(&words)?)
    }

    /// Runs a command that must not fail.
    pub(crate) fn expect(&mut self, words: Words) -> Result<Value, NoPage> {
        Ok(quoin_queues::expect(self.client(), &words)?)
    }

    /// Runs commands together.
    pub(crate) fn run_all(&mut self, commands: &[Words]) -> Result<Vec<Value>, NoPage> {
        Ok(quoin_queues::run_all(self.client(), commands)?)
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

    /// Whether the user's rights allow a command. Only decides what is shown, because the server
    /// checks again.
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

    /// Makes the next page show what an action did.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.connection.notice = Some(Notice {
            is_error: false,
            text: text.into(),
        });
    }

    /// Makes the next page show why an action did nothing.
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

    /// The fields whose name begins with a prefix, each with the rest of the name.
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

impl<'f> FromIterator<(&'f str, &'f str)> for Info {
    fn from_iter<I: IntoIterator<Item = (&'f str, &'f str)>>(fields: I) -> Self {
        let fields = fields.into_iter();
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self(fields.collect())
    }
}
