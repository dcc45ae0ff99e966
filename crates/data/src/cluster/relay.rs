//! Messages between servers of one store. A server that publishes also writes its messages to a
//! log, in commit order, and changes one row, the bell. All servers with subscribers watch the
//! bell. They read the log from their position on and deliver what others have published.
//!
//! Nobody waits for readers, and the log is cleared after some seconds. So a message is delivered
//! at most once, as in Redis.
//!
//! While clients track keys, the log also contains the names of changed keys
//! ([`crate::unit::host`]). While clients wait, it contains the names of keys that may have
//! something for them. A reader learns if the log was cleared before it has read everything. Every
//! key then counts as changed.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;

use quoin_base::limits::TRACKED_NAMES_BYTES_MAX;
use quoin_layout::message::{
    decode_messages, decode_names, encode_messages, encode_names, read_message_row,
};
use quoin_layout::{DecodeError, KeyRange, Layout, successor};
use quoin_store::{Isolation, KeyValue, RangeQuery, ReadTransaction, StoreError, Transaction};

use crate::keyspace::key::ClientKey;
use crate::unit::context::Environment;
use crate::unit::host::Change;
use crate::unit::signals::{ChannelKind, Message, Ready};

/// Kinds of messages as they are stored.
const GLOBAL: u8 = 0;
const SHARD: u8 = 1;
const CHANGED: u8 = 2;
const ALL_CHANGED: u8 = 3;
const READY: u8 = 4;
const ALL_READY: u8 = 5;

/// Writes messages, and the names of changed and ready keys, for the other servers, in the
/// transaction of the commands that publish and change them. Causes no conflicts. Returns whether
/// there was anything to write.
pub fn write_messages(
    transaction: &dyn Transaction,
    environment: &Environment,
    messages: &[Message],
    changes: &[Change],
    ready: &ReadyKeys,
) -> bool {
    let changed = changed_keys(changes);
    let ready = ready.encode();
    if messages.is_empty() && changed.is_none() && ready.is_empty() {
        return false;
    }
    let layout = &environment.layout;
    let parts = messages.iter().map(|message| {
        let kind = match message.kind {
            ChannelKind::Global => GLOBAL,
            ChannelKind::Shard => SHARD,
        };
        (kind, message.channel.as_ref(), message.payload.as_ref())
    });
    let changed = changed.as_ref();
    let changed = changed.map(|(kind, names)| (*kind, &b""[..], names.as_ref()));
    let ready = ready.iter();
    let ready = ready.map(|(kind, database, names)| (*kind, database.as_slice(), names.as_ref()));
    let parts = parts.chain(changed).chain(ready);
    let rows = encode_messages(environment.ids.instance(), parts);
    transaction.append(&layout.messages_prefix(), &rows);
    transaction.atomic_add(&layout.bell_key(), 1);
    true
}

/// The message with the names of changed keys: its kind and payload.
fn changed_keys(changes: &[Change]) -> Option<(u8, Bytes)> {
    let mut seen = HashSet::new();
    let keys = changes.iter().filter_map(Change::tracked_key);
    let names: Vec<&Bytes> = keys.filter(|key| seen.insert(*key)).collect();
    let is_long = bytes_of(names.iter().copied()) > TRACKED_NAMES_BYTES_MAX;
    if changes.contains(&Change::AllKeys) || is_long {
        return Some((ALL_CHANGED, Bytes::new()));
    }
    (!names.is_empty()).then(|| (CHANGED, encode_names(names.into_iter())))
}

/// Keys that may have something for waiting clients of other servers.
#[derive(Debug, Default)]
pub struct ReadyKeys {
    /// Names by database. `None`: all keys of the database.
    by_database: BTreeMap<u32, Option<HashSet<Bytes>>>,
    is_anywhere: bool,
}

impl ReadyKeys {
    /// Adds what has become ready.
    pub fn add(&mut self, ready: &Ready) {
        match ready {
            Ready::Key(key, _) | Ready::Gone(key, _) | Ready::Items { key, .. } => {
                let names = self.by_database.entry(key.database);
                if let Some(names) = names.or_insert_with(|| Some(HashSet::new())) {
                    names.insert(key.key.clone());
                }
            }
            Ready::Database(database) => {
                self.by_database.insert(*database, None);
            }
            Ready::Anywhere => self.is_anywhere = true,
        }
    }

    /// Messages with these keys: kind, channel and payload of each.
    fn encode(&self) -> Vec<(u8, Vec<u8>, Bytes)> {
        if self.is_anywhere {
            return vec![(ALL_READY, Vec::new(), Bytes::new())];
        }
        let by_database = self.by_database.iter();
        by_database
            .map(|(database, names)| {
                let database = database.to_be_bytes().to_vec();
                match names {
                    Some(names) if bytes_of(names.iter()) <= TRACKED_NAMES_BYTES_MAX => {
                        (READY, database, encode_names(names.iter()))
                    }
                    _ => (ALL_READY, database, Bytes::new()),
                }
            })
            .collect()
    }
}

/// Bytes of the message that has these names.
fn bytes_of<'n>(names: impl Iterator<Item = &'n Bytes>) -> usize {
    names.map(|name| name.len() + size_of::<u32>()).sum()
}

/// The key of the last row of the log. `None`, which sorts before every row, if the log is empty.
pub async fn last_message_key(
    transaction: &dyn ReadTransaction,
    layout: &Layout,
) -> Result<Option<Bytes>, StoreError> {
    let KeyRange { begin, end } = layout.messages();
    let query = RangeQuery {
        begin: &begin,
        end: &end,
        limit: 1,
        reverse: true,
        isolation: Isolation::Snapshot,
    };
    let rows = transaction.get_range(query).await?;
    Ok(rows.into_iter().next().map(|row| row.key))
}

/// Clears the log up to and including a row.
///
/// # Errors
/// If the store fails.
pub async fn clear_messages(
    transaction: &dyn Transaction,
    layout: &Layout,
    last: &[u8],
) -> Result<(), StoreError> {
    let begin = layout.messages().begin;
    transaction.clear_range(&begin, &successor(last));
    let key = layout.messages_cleared_key();
    let cleared = transaction.get(&key, Isolation::Serializable).await?;
    // Another server may have cleared more.
    if cleared.is_none_or(|cleared| *cleared < *last) {
        transaction.set(&key, last);
    }
    Ok(())
}

/// The key of the last row that was cleared.
async fn last_cleared_key(
    transaction: &dyn ReadTransaction,
    layout: &Layout,
) -> Result<Option<Bytes>, StoreError> {
    let key = layout.messages_cleared_key();
    transaction.get(&key, Isolation::Snapshot).await
}

/// What a reader found in the log.
#[derive(Debug, Default)]
pub struct News {
    /// Messages published by other servers.
    pub messages: Vec<Message>,
    /// Keys changed by other servers.
    pub changes: Vec<Change>,
    /// Keys that other servers made ready for waiting clients.
    pub ready: HashSet<ClientKey>,
    /// Databases of which other servers may have made any key ready.
    pub ready_databases: Vec<u32>,
    /// Whether other servers may have made any key ready.
    pub is_any_ready: bool,
    /// Whether there may be more.
    pub has_more: bool,
    /// The bell at that time.
    pub bell: Option<Bytes>,
}

impl News {
    /// Whether nothing was reported.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
            && self.changes.is_empty()
            && self.ready.is_empty()
            && self.ready_databases.is_empty()
            && !self.is_any_ready
    }

    /// Records that a report could not be read.
    fn miss(&mut self) {
        self.changes.push(Change::AllKeys);
        self.is_any_ready = true;
    }

    /// Whether a key may have become ready for waiting clients.
    pub fn concerns(&self, key: &ClientKey) -> bool {
        self.ready.contains(key)
            || self.ready_databases.contains(&key.database)
            || self.is_any_ready
    }
}

/// One server's position in the log.
#[derive(Debug, Clone)]
pub struct LogReader {
    own_instance: u64,
    next: Vec<u8>,
    end: Vec<u8>,
    partial: Option<Partial>,
}

/// Rows of a transaction that has more rows.
#[derive(Debug, Clone)]
struct Partial {
    stamp: [u8; 10],
    rows: u16,
    text: Vec<u8>,
}

impl LogReader {
    /// A reader of everything written from now on. It starts after all rows that were ever in the log.
    pub async fn start(
        transaction: &dyn ReadTransaction,
        environment: &Environment,
    ) -> Result<Self, StoreError> {
        let layout = &environment.layout;
        let KeyRange { begin, end } = layout.messages();
        let last = last_message_key(transaction, layout).await?;
        let cleared = last_cleared_key(transaction, layout).await?;
        let last = last.max(cleared);
        Ok(Self {
            own_instance: environment.ids.instance(),
            next: last.map_or(begin, |last| successor(&last)),
            end,
            partial: None,
        })
    }

    /// Reads up to `rows_max` rows.
    ///
    /// # Errors
    /// After an error, nothing is skipped.
    pub async fn read(
        &mut self,
        transaction: &dyn ReadTransaction,
        layout: &Layout,
        rows_max: usize,
    ) -> Result<News, StoreError> {
        let query = RangeQuery {
            begin: &self.next,
            end: &self.end,
            limit: rows_max,
            reverse: false,
            isolation: Isolation::Snapshot,
        };
        let bell_key = layout.bell_key();
        let (rows, cleared, bell) = futures_util::try_join!(
            transaction.get_range(query),
            last_cleared_key(transaction, layout),
            transaction.get(&bell_key, Isolation::Snapshot),
        )?;
        let mut news = News {
            has_more: rows.len() >= rows_max,
            bell,
            ..News::default()
        };
        if cleared.is_some_and(|cleared| cleared >= self.next) {
            tracing::warn!("messages of other servers were cleared before this server read them");
            news.miss();
        }
        for row in &rows {
            self.next = successor(&row.key);
            // A newer server may write rows that this one cannot read. They are skipped.
            if let Err(error) = self.take(layout, row, &mut news) {
                tracing::warn!(%error, "a message of another server is lost");
                news.miss();
            }
        }
        Ok(news)
    }

    fn take(&mut self, layout: &Layout, row: &KeyValue, news: &mut News) -> Result<(), StoreError> {
        let (stamp, number) = layout.read_message_key(&row.key)?;
        let (count, piece) = read_message_row(&row.value)?;
        let mut partial = match self.partial.take() {
            Some(partial) if partial.stamp == stamp && partial.rows == number => partial,
            // Rows whose beginning was cleared are useless.
            _ if number != 0 => return Ok(()),
            _ => Partial {
                stamp,
                rows: 0,
                text: Vec::new(),
            },
        };
        partial.text.extend_from_slice(piece);
        partial.rows += 1;
        if partial.rows < count {
            self.partial = Some(partial);
            return Ok(());
        }
        let (instance, stored) = decode_messages(partial.text.into())?;
        if instance == self.own_instance {
            return Ok(());
        }
        for message in stored {
            let kind = match message.kind {
                GLOBAL => ChannelKind::Global,
                CHANGED => {
                    let names = decode_names(message.payload)?;
                    news.changes
                        .extend(names.into_iter().map(Change::Unwatched));
                    continue;
                }
                ALL_CHANGED => {
                    news.changes.push(Change::AllKeys);
                    continue;
                }
                READY => {
                    let database = read_database(&message.channel)?;
                    let names = decode_names(message.payload)?.into_iter();
                    let keys = names.map(|key| ClientKey { database, key });
                    news.ready.extend(keys);
                    continue;
                }
                ALL_READY if message.channel.is_empty() => {
                    news.is_any_ready = true;
                    continue;
                }
                ALL_READY => {
                    news.ready_databases.push(read_database(&message.channel)?);
                    continue;
                }
                _ => ChannelKind::Shard,
            };
            news.messages.push(Message {
                kind,
                channel: message.channel,
                payload: message.payload,
            });
        }
        Ok(())
    }
}

/// The number of a database, from the channel of a message that names keys.
fn read_database(channel: &[u8]) -> Result<u32, DecodeError> {
    let number = <[u8; 4]>::try_from(channel);
    number
        .map(u32::from_be_bytes)
        .map_err(|_| DecodeError("database of keys that became ready"))
}
