//! Running the commands of a file.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;

use super::commands::{Commands, Next, is};
use super::expiries::shift;
use crate::clock::{Clock, SystemClock};
use crate::commands::resolve;
use crate::import::counts::{Unusable, UnusableKeys, no_database};
use crate::import::error::ImportError;
use crate::limits::{DATABASES_MAX, IMPORT_CHUNK_BYTES};
use crate::redis_client::{Client, Progress};

/// Commands that are sent together.
const COMMANDS_AT_ONCE: usize = 1_000;

/// What an error says of a command that the server does not have.
const UNKNOWN: &str = "unknown command";
/// What the names of commands about expiries of fields begin with.
const FIELD_EXPIRY_PREFIXES: [&[u8]; 5] =
    [b"HEXPIRE", b"HPEXPIRE", b"HPERSIST", b"HGETEX", b"HSETEX"];

/// Runs commands, and notes keys that are then not as they were.
pub(super) struct Replayer<'a> {
    client: Client,
    unusable: &'a mut UnusableKeys,
    sent: Vec<Sent>,
    now_ms: i64,
}

/// A command whose reply is still to come.
struct Sent {
    database: u32,
    name: Bytes,
    effect: Effect,
}

/// What a command has to do with keys that are not as they were.
enum Effect {
    /// It concerns these keys.
    Keys(Vec<Bytes>),
    /// It removes these keys, or all of a database, or all.
    Removes(Vec<Bytes>),
    Empties,
    EmptiesAll,
}

impl Effect {
    fn of(words: &[Bytes]) -> Self {
        let (name, rest) = match words.split_first() {
            Some((name, rest)) => (&name[..], rest),
            None => (&b""[..], words),
        };
        if is(name, "del") || is(name, "unlink") {
            return Effect::Removes(rest.to_vec());
        }
        if is(name, "flushdb") {
            return Effect::Empties;
        }
        if is(name, "flushall") {
            return Effect::EmptiesAll;
        }
        let keys = match resolve(words) {
            Ok(row) => row.key_indexes(words),
            // The first argument of nearly all commands.
            Err(_) => vec![1],
        };
        let keys = keys.into_iter().filter_map(|index| words.get(index));
        Effect::Keys(keys.cloned().collect())
    }
}

impl<'a> Replayer<'a> {
    pub(super) fn new(client: Client, unusable: &'a mut UnusableKeys) -> Self {
        Self {
            client,
            unusable,
            sent: Vec::new(),
            now_ms: SystemClock.now_ms(),
        }
    }

    /// Runs what stands at these places of a file. Each file begins with database 0.
    pub(super) fn run(
        &mut self,
        path: &Path,
        places: Range<u64>,
        progress: &mut Progress,
    ) -> Result<(), ImportError> {
        let mut commands = Commands::open(path, places.start)?;
        let mut database = 0;
        while commands.position() < places.end
            && let Next::Command(mut words) = commands.next()?
        {
            progress.keys += 1;
            match words.as_slice() {
                // All of a transaction is there, and nobody looks on.
                [name] if is(name, "multi") || is(name, "exec") => continue,
                [name, number] if is(name, "select") => {
                    let number = std::str::from_utf8(number).ok();
                    database = number.and_then(|one| one.parse().ok()).unwrap_or(database);
                }
                _ => {}
            }
            if database >= DATABASES_MAX {
                // The server has none of that number, and would go on with the one before.
                self.unusable.database = database;
                if let Effect::Keys(keys) = Effect::of(&words) {
                    for key in &keys {
                        self.unusable
                            .add(key, Unusable::Skipped(no_database(database)));
                    }
                }
                continue;
            }
            shift(&mut words, self.now_ms);
            self.client.queue(&words);
            if let Some(name) = words.first() {
                self.sent.push(Sent {
                    database,
                    name: name.clone(),
                    effect: Effect::of(&words),
                });
            }
            if self.sent.len() >= COMMANDS_AT_ONCE
                || self.client.queued_bytes() >= IMPORT_CHUNK_BYTES
            {
                self.flush()?;
                progress.show(format_args!("commands of the file"));
            }
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), ImportError> {
        self.client.send()?;
        for sent in std::mem::take(&mut self.sent) {
            let reply = self.client.read()?;
            self.note(sent, reply.error_text().as_deref());
        }
        Ok(())
    }

    fn note(&mut self, sent: Sent, error: Option<&str>) {
        let unusable = &mut *self.unusable;
        unusable.database = sent.database;
        match (sent.effect, error) {
            (Effect::Keys(keys), Some(error)) if keys.is_empty() => {
                unusable.add(&sent.name, why(&sent.name, error));
            }
            (Effect::Keys(keys), Some(error)) => {
                for key in &keys {
                    unusable.add(key, why(&sent.name, error));
                }
            }
            (Effect::Keys(keys), None) => unusable.spread(&keys),
            (Effect::Removes(keys), None) => unusable.remove(&keys.into_iter().collect()),
            (Effect::Empties, None) => unusable.empty(Some(sent.database)),
            (Effect::EmptiesAll, None) => unusable.empty(None),
            (Effect::Removes(_) | Effect::Empties | Effect::EmptiesAll, Some(error)) => {
                unusable.add(&sent.name, why(&sent.name, error));
            }
        }
    }
}

/// Why keys are not as they were after a command that was refused.
fn why(name: &[u8], error: &str) -> Unusable {
    let upper = name.to_ascii_uppercase();
    let shown = String::from_utf8_lossy(&upper);
    if !error.contains(UNKNOWN) {
        return Unusable::Failed(format!("{shown} of the append-only file: {error}"));
    }
    let is_of_fields = FIELD_EXPIRY_PREFIXES
        .iter()
        .any(|one| upper.starts_with(one));
    Unusable::Skipped(match is_of_fields {
        true => "a hash with fields that expire".to_owned(),
        false => format!("changed by {shown}, which Quoin does not have"),
    })
}

impl UnusableKeys {
    /// A command that concerns several keys, of which one is not as it was, makes others of the kind.
    fn spread(&mut self, keys: &[Bytes]) {
        if self.keys.is_empty() || keys.len() < 2 {
            return;
        }
        let mut reasons = keys
            .iter()
            .filter_map(|key| self.keys.get(&(self.database, key.to_vec())));
        if let Some(why) = reasons.next().cloned() {
            for key in keys {
                self.add(key, why.clone());
            }
        }
    }

    /// Keys are gone, whatever they were.
    fn remove(&mut self, keys: &HashSet<Bytes>) {
        if self.keys.is_empty() {
            return;
        }
        for key in keys {
            self.keys.remove(&(self.database, key.to_vec()));
        }
    }

    /// All keys of a database, or of all, are gone.
    fn empty(&mut self, database: Option<u32>) {
        self.keys
            .retain(|(other, _), _| database.is_some_and(|database| database != *other));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Bytes> {
        let words = line.split(' ').map(str::as_bytes);
        words.map(Bytes::copy_from_slice).collect()
    }

    fn note(unusable: &mut UnusableKeys, line: &str, error: Option<&str>) {
        let words = words(line);
        // What `note` does with a reply, without a server.
        let effect = Effect::of(&words);
        match (effect, error) {
            (Effect::Keys(keys), Some(error)) => {
                for key in &keys {
                    unusable.add(key, why(&words[0], error));
                }
            }
            (Effect::Keys(keys), None) => unusable.spread(&keys),
            (Effect::Removes(keys), _) => unusable.remove(&keys.into_iter().collect()),
            (Effect::Empties, _) => unusable.empty(Some(0)),
            (Effect::EmptiesAll, _) => unusable.empty(None),
        }
    }

    fn keys(unusable: &UnusableKeys) -> Vec<String> {
        let names = unusable.keys.keys().map(|(_, name)| name);
        names
            .map(|name| String::from_utf8(name.clone()).unwrap())
            .collect()
    }

    #[test]
    fn a_key_is_unusable_until_it_is_gone() {
        let mut unusable = UnusableKeys::default();
        let unknown = Some("ERR unknown command 'HPEXPIREAT'");
        note(&mut unusable, "HPEXPIREAT h 7 FIELDS 1 f", unknown);
        note(&mut unusable, "BF.ADD bloom x", unknown);
        assert_eq!(keys(&unusable), ["bloom", "h"]);
        note(&mut unusable, "RENAME h other", None);
        note(&mut unusable, "HSET third f v", None);
        assert_eq!(keys(&unusable), ["bloom", "h", "other"]);
        note(&mut unusable, "DEL h bloom", None);
        assert_eq!(keys(&unusable), ["other"]);
        note(&mut unusable, "FLUSHALL", None);
        assert!(keys(&unusable).is_empty());
    }

    #[test]
    fn a_reason_says_which_command_was_refused() {
        let unknown = "ERR unknown command 'x'";
        let skipped = |text: &str| Unusable::Skipped(text.to_owned());
        assert_eq!(
            why(b"hpexpireat", unknown),
            skipped("a hash with fields that expire")
        );
        assert_eq!(
            why(b"BF.ADD", unknown),
            skipped("changed by BF.ADD, which Quoin does not have")
        );
        assert_eq!(
            why(b"INCR", "WRONGTYPE x"),
            Unusable::Failed("INCR of the append-only file: WRONGTYPE x".to_owned())
        );
    }
}
