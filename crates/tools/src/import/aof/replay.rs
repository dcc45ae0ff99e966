//! Runs the commands of a file. Each key expires later than its command says.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;

use super::files::{Commands, Next, is};
use crate::import::report::{ImportError, Unusable, UnusableKeys, no_database};
use quoin_base::clock::{Clock, SystemClock};
use quoin_base::limits::{DATABASES_MAX, IMPORT_CHUNK_BYTES};
use quoin_client::{Client, Progress, Transaction};
use quoin_data::command::flags::Flags;
use quoin_data::command::resolve;
use quoin_resp::wire::reply_reader::Value;

/// The reply of a command that found nothing in a transaction.
const NOTHING: Value = Value::Blob(b'$', None);

/// Commands that are sent together.
const COMMANDS_AT_ONCE: usize = 1_000;

/// Part of the error for a command that the server does not have.
const UNKNOWN: &str = "unknown command";

/// Commands that occur in such a file although they are not writes.
const RUN_TOO: [&str; 7] = [
    "select", "script", "function", "eval", "evalsha", "fcall", "pfcount",
];

/// Commands that mean the same in all databases.
const OF_ALL_DATABASES: [&str; 4] = ["flushall", "swapdb", "function", "script"];

/// Runs commands, and records keys that may then differ from the original.
pub(super) struct Replayer<'a> {
    client: Client,
    unusable: &'a mut UnusableKeys,
    sent: Vec<Sent>,
    now_ms: i64,
}

/// A command whose reply is pending.
struct Sent {
    database: u32,
    name: Bytes,
    effect: Effect,
    /// It would block, so it is in a transaction of its own.
    is_alone: bool,
}

/// The effect of a command on keys that are unusable.
enum Effect {
    /// It uses these keys.
    Keys(Vec<(u32, Bytes)>),
    /// It exchanges two databases.
    Swaps(u32, u32),
    /// It removes these keys, or all of a database, or all.
    Removes(Vec<Bytes>),
    Empties,
    EmptiesAll,
}

impl Effect {
    fn of(words: &[Bytes], database: u32) -> Self {
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
        if let [_, first, second] = words
            && is(name, "swapdb")
            && let (Some(first), Some(second)) = (database_of(first), database_of(second))
        {
            return Effect::Swaps(first, second);
        }
        let keys = match resolve(words) {
            Ok(row) => row.key_indexes(words),
            // The first argument of nearly all commands.
            Err(_) => vec![1],
        };
        let keys = keys.into_iter().filter_map(|index| words.get(index));
        let mut places: Vec<_> = keys.map(|key| (database, key.clone())).collect();
        if is(name, "move") {
            let key = places.first().map(|(_, key)| key.clone());
            let other = words.get(2).and_then(database_of);
            places.extend(other.zip(key));
        } else if is(name, "copy") {
            let options = words.get(3..).unwrap_or_default();
            let place = options.iter().position(|word| is(word, "db"));
            let other = place.and_then(|place| options.get(place + 1));
            if let (Some(other), Some(last)) = (other.and_then(database_of), places.last_mut()) {
                last.0 = other;
            }
        }
        Effect::Keys(places)
    }
}

fn database_of(word: &Bytes) -> Option<u32> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

fn is_one_of(name: &[u8], names: &[&str]) -> bool {
    names.iter().any(|one| is(name, one))
}

/// Whether a command is run. Others may send several replies or none, or wait. MIGRATE, which no server
/// writes to its file, would connect elsewhere.
fn is_run(name: &[u8], words: &[Bytes]) -> bool {
    if is(name, "migrate") {
        return false;
    }
    match resolve(words) {
        Ok(row) => row.flags.contains(Flags::WRITE) || is_one_of(name, &RUN_TOO),
        // The server reports what is wrong with it.
        Err(_) => true,
    }
}

fn may_block(words: &[Bytes]) -> bool {
    resolve(words).is_ok_and(|row| row.flags.contains(Flags::BLOCKING))
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

    /// Runs the commands in this range of a file. Each file begins with database 0.
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
                // The transaction is complete, and no other client reads.
                [name] if is(name, "multi") || is(name, "exec") => continue,
                [name, number] if is(name, "select") => {
                    let number = std::str::from_utf8(number).ok();
                    database = number.and_then(|one| one.parse().ok()).unwrap_or(database);
                }
                _ => {}
            }
            let Some(name) = words.first().cloned() else {
                continue;
            };
            if !is_run(&name, &words) {
                // An earlier command may have emptied the database.
                self.flush()?;
                let line = "not a command that writes; it was not run";
                self.unusable.database = database;
                self.unusable.add(&name, why(&name, line));
                continue;
            }
            let effect = Effect::of(&words, database);
            if database >= DATABASES_MAX && !is_one_of(&name, &OF_ALL_DATABASES) {
                // The server does not have this database, and would stay in the previous one.
                self.flush()?;
                self.unusable.database = database;
                let skipped = || Unusable::Skipped(no_database(database));
                match effect {
                    Effect::Keys(_) if is(&name, "select") => {}
                    Effect::Keys(places) if places.is_empty() => {
                        self.unusable.add(&name, skipped());
                    }
                    Effect::Keys(places) => {
                        for (database, key) in &places {
                            self.unusable.add_in(*database, key, skipped());
                        }
                    }
                    _ => {}
                }
                continue;
            }
            shift(&mut words, self.now_ms);
            let is_alone = may_block(&words);
            match is_alone {
                true => {
                    let words: Vec<&[u8]> = words.iter().map(|word| &word[..]).collect();
                    self.client.queue_transaction(&[&words]);
                }
                false => self.client.queue(&words),
            }
            self.sent.push(Sent {
                database,
                name,
                effect,
                is_alone,
            });
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
        if self.sent.is_empty() {
            return Ok(());
        }
        self.client.send()?;
        for sent in std::mem::take(&mut self.sent) {
            let reply = match sent.is_alone {
                false => self.client.read()?,
                true => match self.client.read_transaction(1)? {
                    Transaction::Done(replies) => replies.into_iter().next().unwrap_or(NOTHING),
                    Transaction::Changed => NOTHING,
                    Transaction::Refused(reply) => reply,
                },
            };
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
                for (database, key) in &keys {
                    unusable.add_in(*database, key, why(&sent.name, error));
                }
            }
            (Effect::Keys(keys), None) => unusable.spread(&keys),
            (Effect::Swaps(first, second), None) => unusable.swap(first, second),
            (Effect::Removes(keys), None) => unusable.remove(&keys.into_iter().collect()),
            (Effect::Empties, None) => unusable.empty(Some(sent.database)),
            (Effect::EmptiesAll, None) => unusable.empty(None),
            (_, Some(error)) => unusable.add(&sent.name, why(&sent.name, error)),
        }
    }
}

/// Why keys may differ from the original after a refused command.
fn why(name: &[u8], error: &str) -> Unusable {
    let upper = name.to_ascii_uppercase();
    let shown = String::from_utf8_lossy(&upper);
    if !error.contains(UNKNOWN) {
        return Unusable::Failed(format!("{shown} of the append-only file: {error}"));
    }
    Unusable::Skipped(format!("changed by {shown}, which Quoin does not have"))
}

impl UnusableKeys {
    /// If a command concerns several keys and one of them is unusable, all become unusable.
    fn spread(&mut self, keys: &[(u32, Bytes)]) {
        if self.keys.is_empty() || keys.len() < 2 {
            return;
        }
        let mut reasons = keys
            .iter()
            .filter_map(|(database, key)| self.keys.get(&(*database, key.to_vec())));
        if let Some(why) = reasons.next().cloned() {
            for (database, key) in keys {
                self.add_in(*database, key, why.clone());
            }
        }
    }

    /// Two databases are exchanged.
    fn swap(&mut self, first: u32, second: u32) {
        let keys = std::mem::take(&mut self.keys).into_iter();
        self.keys = keys
            .map(|((database, key), why)| match database {
                one if one == first => ((second, key), why),
                one if one == second => ((first, key), why),
                other => ((other, key), why),
            })
            .collect();
    }

    /// Keys are deleted.
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

/// How much later, in milliseconds: about a thousand years, longer than any replay.
pub(in crate::import) const EXPIRY_SHIFT_MS: i64 = 1 << 45;

/// When a key expires.
#[derive(Clone, Copy)]
enum Unit {
    /// Seconds or milliseconds from now on.
    Seconds,
    Milliseconds,
    /// Seconds or milliseconds since the Unix epoch.
    AtSeconds,
    AtMilliseconds,
}

impl Unit {
    fn of_option(word: &[u8]) -> Option<Self> {
        [
            ("ex", Unit::Seconds),
            ("px", Unit::Milliseconds),
            ("exat", Unit::AtSeconds),
            ("pxat", Unit::AtMilliseconds),
        ]
        .into_iter()
        .find_map(|(name, unit)| is(word, name).then_some(unit))
    }

    /// The expiry in the replay, as text. `None` if the number is invalid, which the server will
    /// report.
    fn shifted(self, number: &[u8], now_ms: i64) -> Option<Bytes> {
        let number: i64 = std::str::from_utf8(number).ok()?.parse().ok()?;
        let ms = match self {
            Unit::Seconds | Unit::AtSeconds => number.checked_mul(1_000)?,
            Unit::Milliseconds | Unit::AtMilliseconds => number,
        };
        let at_ms = match self {
            Unit::Seconds | Unit::Milliseconds => ms.checked_add(now_ms)?,
            Unit::AtSeconds | Unit::AtMilliseconds => ms,
        };
        // A time before the epoch has expired just as much as the epoch itself.
        let shifted = at_ms.max(0).checked_add(EXPIRY_SHIFT_MS)?;
        Some(shifted.to_string().into())
    }
}

/// Shifts the expiry of a command, if it has one.
fn shift(words: &mut Vec<Bytes>, now_ms: i64) -> Option<()> {
    let name = words.first()?.clone();
    let static_word = Bytes::from_static;
    for (other, unit) in [
        ("expire", Unit::Seconds),
        ("pexpire", Unit::Milliseconds),
        ("expireat", Unit::AtSeconds),
        ("pexpireat", Unit::AtMilliseconds),
    ] {
        if is(&name, other) {
            let at = unit.shifted(words.get(2)?, now_ms)?;
            *words.get_mut(2)? = at;
            *words.first_mut()? = static_word(b"PEXPIREAT");
            return Some(());
        }
    }
    for (other, unit) in [
        ("hexpire", Unit::Seconds),
        ("hpexpire", Unit::Milliseconds),
        ("hexpireat", Unit::AtSeconds),
        ("hpexpireat", Unit::AtMilliseconds),
    ] {
        if is(&name, other) {
            let at = unit.shifted(words.get(2)?, now_ms)?;
            *words.get_mut(2)? = at;
            *words.first_mut()? = static_word(b"HPEXPIREAT");
            return Some(());
        }
    }
    for (other, unit) in [("setex", Unit::Seconds), ("psetex", Unit::Milliseconds)] {
        if is(&name, other) {
            let [_, key, number, value] = words.as_slice() else {
                return None;
            };
            let at = unit.shifted(number, now_ms)?;
            let set = static_word(b"SET");
            *words = vec![set, key.clone(), value.clone(), static_word(b"PXAT"), at];
            return Some(());
        }
    }
    let first_option = match &name {
        name if is(name, "set") => 3,
        name if ["getex", "hgetex", "hsetex"]
            .iter()
            .any(|one| is(name, one)) =>
        {
            2
        }
        name if is(name, "restore") => return shift_restored(words, now_ms),
        _ => return None,
    };
    let mut place = first_option;
    while let Some(word) = words.get(place) {
        if is(word, "fields") {
            // Fields and values follow.
            break;
        }
        if let Some(unit) = Unit::of_option(word) {
            let at = unit.shifted(words.get(place + 1)?, now_ms)?;
            *words.get_mut(place + 1)? = at;
            *words.get_mut(place)? = static_word(b"PXAT");
            place += 1;
        }
        place += 1;
    }
    Some(())
}

/// `RESTORE key ttl payload [ABSTTL]`. A ttl of 0 means no expiry.
fn shift_restored(words: &mut Vec<Bytes>, now_ms: i64) -> Option<()> {
    if words.get(2).is_none_or(|ttl| &ttl[..] == b"0") {
        return None;
    }
    let is_absolute = words.iter().skip(4).any(|word| is(word, "absttl"));
    let unit = match is_absolute {
        true => Unit::AtMilliseconds,
        false => Unit::Milliseconds,
    };
    let at = unit.shifted(words.get(2)?, now_ms)?;
    *words.get_mut(2)? = at;
    if !is_absolute {
        words.push(Bytes::from_static(b"ABSTTL"));
    }
    Some(())
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
        // Applies the effect of `note` without a server.
        let effect = Effect::of(&words, 0);
        match (effect, error) {
            (Effect::Keys(keys), Some(error)) => {
                for (database, key) in &keys {
                    unusable.add_in(*database, key, why(&words[0], error));
                }
            }
            (Effect::Keys(keys), None) => unusable.spread(&keys),
            (Effect::Swaps(first, second), _) => unusable.swap(first, second),
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
        let unknown = Some("ERR unknown command");
        note(&mut unusable, "BF.ADD h x", unknown);
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
    fn a_key_stays_unusable_in_another_database() {
        for (line, expected) in [
            ("MOVE h 1", &[(0, "h"), (1, "h")][..]),
            ("COPY h other DB 1", &[(0, "h"), (1, "other")]),
            ("COPY h h REPLACE DB 1", &[(0, "h"), (1, "h")]),
            ("SWAPDB 0 1", &[(1, "h")]),
        ] {
            let mut unusable = UnusableKeys::default();
            note(&mut unusable, "BF.ADD h x", Some("ERR unknown command"));
            note(&mut unusable, line, None);
            let places = expected
                .iter()
                .map(|(database, key)| (*database, key.as_bytes().to_vec()));
            let found: Vec<_> = unusable.keys.into_keys().collect();
            assert_eq!(found, places.collect::<Vec<_>>(), "{line}");
        }
    }

    #[test]
    fn only_what_changes_data_is_run() {
        let is_run = |line: &str| {
            let words = words(line);
            is_run(&words[0], &words)
        };
        for line in [
            "set k v",
            "SELECT 1",
            "PFCOUNT k",
            "SCRIPT FLUSH",
            "BF.ADD k v",
            "BRPOPLPUSH a b 0",
        ] {
            assert!(is_run(line), "{line}");
        }
        for line in [
            "SUBSCRIBE a b",
            "CLIENT REPLY OFF",
            "MIGRATE host 1 k 0 1",
            "GET k",
            "QUIT",
        ] {
            assert!(!is_run(line), "{line}");
        }
    }

    #[test]
    fn a_reason_says_which_command_was_refused() {
        let unknown = "ERR unknown command 'x'";
        let skipped = |text: &str| Unusable::Skipped(text.to_owned());
        assert_eq!(
            why(b"BF.ADD", unknown),
            skipped("changed by BF.ADD, which Quoin does not have")
        );
        assert_eq!(
            why(b"INCR", "WRONGTYPE x"),
            Unusable::Failed("INCR of the append-only file: WRONGTYPE x".to_owned())
        );
    }

    fn shifted(line: &str) -> String {
        let mut words: Vec<Bytes> = line
            .split(' ')
            .map(|word| Bytes::copy_from_slice(word.as_bytes()))
            .collect();
        shift(&mut words, 5_000);
        let words: Vec<_> = words
            .iter()
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        words.join(" ")
    }

    #[test]
    fn keys_expire_later_by_the_same_time() {
        for (line, expected, ms) in [
            ("PEXPIREAT k 7", "PEXPIREAT k", 7),
            ("expireat k 7", "PEXPIREAT k", 7_000),
            ("EXPIRE k 7", "PEXPIREAT k", 12_000),
            ("PEXPIRE k 7", "PEXPIREAT k", 5_007),
            ("PEXPIREAT k -7", "PEXPIREAT k", 0),
            ("SETEX k 7 v", "SET k v PXAT", 12_000),
            ("PSETEX k 7 v", "SET k v PXAT", 5_007),
            ("SET k v PXAT 7", "SET k v PXAT", 7),
            ("SET k v NX EX 7", "SET k v NX PXAT", 12_000),
            ("GETEX k exat 7", "GETEX k PXAT", 7_000),
        ] {
            let at = EXPIRY_SHIFT_MS + ms;
            assert_eq!(shifted(line), format!("{expected} {at}"), "{line}");
        }
        let at = EXPIRY_SHIFT_MS + 12_000;
        for (line, begin, end) in [
            (
                "HEXPIRE h 7 NX FIELDS 1 ex",
                "HPEXPIREAT h",
                "NX FIELDS 1 ex",
            ),
            (
                "HSETEX h FNX EX 7 FIELDS 1 ex 9",
                "HSETEX h FNX PXAT",
                "FIELDS 1 ex 9",
            ),
            ("HGETEX h ex 7 FIELDS 1 px", "HGETEX h PXAT", "FIELDS 1 px"),
        ] {
            assert_eq!(shifted(line), format!("{begin} {at} {end}"), "{line}");
        }
        let at = EXPIRY_SHIFT_MS + 7;
        let absolute = format!("RESTORE k {at} p REPLACE ABSTTL");
        assert_eq!(shifted("RESTORE k 7 p REPLACE ABSTTL"), absolute);
        let at = EXPIRY_SHIFT_MS + 5_007;
        assert_eq!(shifted("RESTORE k 7 p"), format!("RESTORE k {at} p ABSTTL"));
    }

    #[test]
    fn other_commands_stay_as_they_are() {
        for line in [
            "SET ex px",
            "SET k v",
            "SET k v KEEPTTL",
            "SET k v EX",
            "SET k v EX x",
            "PEXPIREAT k",
            "RESTORE k 0 p",
            "RPUSH k ex 7",
            "GETEX k PERSIST",
            "HSETEX k KEEPTTL FIELDS 2 ex 7 px 8",
        ] {
            assert_eq!(shifted(line), line);
        }
    }
}
