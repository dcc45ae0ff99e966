//! Commands, and their replies as text, numbers and pairs.

use quoin_client::{Client, ClientError};
use quoin_resp::wire::reply_reader::Value;

/// A command with its arguments.
pub type Words = Vec<Vec<u8>>;

/// A command from words, each of them bytes or text.
#[macro_export]
macro_rules! words {
    ($($word:expr),+ $(,)?) => {
        vec![$(AsRef::<[u8]>::as_ref(&$word).to_vec()),+]
    };
}

/// Runs a command that must not fail.
///
/// # Errors
/// The connection's, and `Refused` with the server's error.
pub fn expect(client: &mut Client, words: &Words) -> Result<Value, ClientError> {
    let reply = client.call(words)?;
    match reply.error() {
        Some(_) => Err(client.unexpected(&reply)),
        None => Ok(reply),
    }
}

/// Runs commands together. An error of the server is a reply.
///
/// # Errors
/// The connection's.
pub fn run_all(client: &mut Client, commands: &[Words]) -> Result<Vec<Value>, ClientError> {
    for words in commands {
        client.queue(words);
    }
    client.send()?;
    commands.iter().map(|_| client.read()).collect()
}

/// Alternating names and values, as in the reply of XINFO or TASK.INFO.
pub struct Pairs<'r>(&'r [Value]);

impl<'r> Pairs<'r> {
    /// The pairs of a reply; none if it is no array.
    pub fn of(reply: &'r Value) -> Self {
        Self(items(reply))
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&'r Value> {
        let mut pairs = self.0.chunks_exact(2);
        pairs.find_map(|pair| match pair {
            [key, value] if text(key) == name => Some(value),
            _ => None,
        })
    }

    /// The number of a name; 0 if it is missing.
    pub fn number(&self, name: &str) -> i64 {
        self.get(name).map_or(0, number)
    }

    /// The text of a name; empty if it is missing.
    pub fn text(&self, name: &str) -> String {
        self.get(name).map(text).unwrap_or_default()
    }
}

/// A reply as text, whatever it is.
pub fn text(reply: &Value) -> String {
    match reply {
        Value::Line(_, text) | Value::Blob(_, Some(text)) => {
            String::from_utf8_lossy(text).into_owned()
        }
        Value::Blob(_, None) | Value::Aggregate(..) => String::new(),
    }
}

/// A reply as a number. 0 if it is not one.
pub fn number(reply: &Value) -> i64 {
    reply
        .integer()
        .or_else(|| text(reply).parse().ok())
        .unwrap_or(0)
}

/// The parts of an array.
pub fn items(reply: &Value) -> &[Value] {
    reply.items().unwrap_or_default()
}
