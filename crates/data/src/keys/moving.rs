//! DEL, UNLINK, EXISTS, TOUCH, TYPE, RENAME, RENAMENX, MOVE and COPY.
//!
//! Also the parts of MIGRATE that read and remove the keys to be sent to another server.

use std::collections::HashSet;

use bytes::Bytes;
use quoin_base::events::EventClasses;
use quoin_layout::{KeyRange, Meta};
use quoin_resp::reply::Reply;
use quoin_store::{Isolation, StoreError};

use crate::command::arguments::{argument, is_word, rest};
use crate::error::CommandError;
use crate::keys::databases::database_number;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::{Holds, TypeKind};
use crate::rows::pages::Pages;
use crate::unit::context::{ReadContext, WriteContext};

/// `DEL key [key …]` and `UNLINK key [key …]` → number of keys removed. Both put large values into the trash if the
/// store cannot clear them at once.
pub(super) async fn del(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let names = rest(arguments, 1);
    let mut removed = HashSet::new();
    for (name, key) in names.iter().zip(context.find_each(names).await?) {
        let Some(key) = key else {
            continue;
        };
        // A name that is given twice counts once.
        if !removed.contains(&key.meta_key) {
            context.remove(&key);
            context.notify(EventClasses::GENERIC, "del", name);
            removed.insert(key.meta_key);
        }
    }
    Ok(Reply::count(removed.len()))
}

/// `EXISTS key [key …]` and `TOUCH key [key …]` → number of keys that exist. A key that is named twice counts twice.
pub(super) async fn exists(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let found = context.find_each(rest(arguments, 1)).await?;
    Ok(Reply::count(found.iter().flatten().count()))
}

/// `TYPE key` → the type's name, or `none`.
pub(super) async fn type_of(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let key = context.find_any(argument(arguments, 1)?).await?;
    Ok(Reply::Simple(
        key.map_or("none", |key| key.meta.value_type.name()),
    ))
}

const SAME_OBJECT: CommandError =
    CommandError::text("ERR source and destination objects are the same");

/// `RENAME key newkey` → OK.
pub(super) async fn rename(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let new_name = argument(arguments, 2)?;
    let key = context
        .find_any(name)
        .await?
        .ok_or(CommandError::NoSuchKey)?;
    if name != new_name {
        rename_key(context, &key, name, new_name).await?;
    }
    Ok(Reply::OK)
}

/// `RENAMENX key newkey` → 1, or 0 if the new name is taken.
pub(super) async fn renamenx(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let new_name = argument(arguments, 2)?;
    let key = context
        .find_any(name)
        .await?
        .ok_or(CommandError::NoSuchKey)?;
    if name == new_name || context.find_any(new_name).await?.is_some() {
        return Ok(Reply::Integer(0));
    }
    rename_key(context, &key, name, new_name).await?;
    Ok(Reply::Integer(1))
}

async fn rename_key(
    context: &WriteContext<'_>,
    key: &OpenKey,
    name: &Bytes,
    new_name: &Bytes,
) -> Result<(), CommandError> {
    context.move_key(key, context, new_name).await?;
    context.notify(EventClasses::GENERIC, "rename_from", name);
    context.notify(EventClasses::GENERIC, "rename_to", new_name);
    Ok(())
}

/// `MOVE key db` → 1, or 0 if there is no such key or the other database has one.
pub(super) async fn move_key(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let target = context.for_database(database_number(argument(arguments, 2)?)?)?;
    if target.database == context.database {
        return Err(SAME_OBJECT);
    }
    let Some(key) = context.find_any(name).await? else {
        return Ok(Reply::Integer(0));
    };
    if target.find_any(name).await?.is_some() {
        return Ok(Reply::Integer(0));
    }
    context.move_key(&key, &target, name).await?;
    context.notify(EventClasses::GENERIC, "move_from", name);
    target.notify(EventClasses::GENERIC, "move_to", name);
    Ok(Reply::Integer(1))
}

/// `COPY source destination [DB destination-db] [REPLACE]` → 1, or 0 if there is no such key or the destination is
/// taken.
pub(super) async fn copy(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let new_name = argument(arguments, 2)?;
    let mut target = context.for_database(i64::from(context.database))?;
    let mut replaces = false;
    let mut options = rest(arguments, 3);
    loop {
        options = match options {
            [] => break,
            [option, behind @ ..] if is_word(option, "replace") => {
                replaces = true;
                behind
            }
            [option, number, behind @ ..] if is_word(option, "db") => {
                target = context.for_database(database_number(number)?)?;
                behind
            }
            _ => return Err(CommandError::Syntax),
        };
    }
    if target.database == context.database && name == new_name {
        return Err(SAME_OBJECT);
    }
    let Some(key) = context.find_any(name).await? else {
        return Ok(Reply::Integer(0));
    };
    if target.find_any(new_name).await?.is_some() && !replaces {
        return Ok(Reply::Integer(0));
    }
    context.copy_key(&key, &target, new_name).await?;
    target.notify(EventClasses::GENERIC, "copy_to", new_name);
    Ok(Reply::Integer(1))
}

impl WriteContext<'_> {
    /// Renames a key, in the database of `to`, and replaces any key with that name. Moves no data and keeps the expiry.
    pub async fn move_key(
        &self,
        source: &OpenKey,
        to: &WriteContext<'_>,
        name: &Bytes,
    ) -> Result<(), CommandError> {
        self.return_grants(source).await?;
        // Serializable: an element that is pushed concurrently would be counted under the old name.
        let length = self.length(source, Isolation::Serializable).await?;
        self.detach(source);
        to.put(name, source.meta.clone(), length).await?;
        Ok(())
    }

    /// Copies a key with its expiry, and replaces any key with the new name. Rows of data do not contain their own data
    /// id, so they are copied unchanged, including chunks of split values. Metadata copies name the key and are left
    /// out, and so are blocks for ranks.
    ///
    /// If the copy exceeds the size limit of a transaction, this stops early. The executor then refuses the command for
    /// its size and discards all its changes.
    pub async fn copy_key(
        &self,
        source: &OpenKey,
        to: &WriteContext<'_>,
        name: &Bytes,
    ) -> Result<(), CommandError> {
        let length = self.length(source, Isolation::Serializable).await?;
        let data = self.environment.ids.allocate();
        let meta = Meta {
            data,
            // Blocks are rebuilt when they are needed.
            rank_levels: 0,
            ..source.meta.clone()
        };
        if meta.inline.is_some() {
            to.put(name, meta, length).await?;
            return Ok(());
        }
        let from_prefix = self.layout().data_prefix(source.data());
        let to_prefix = self.layout().data_prefix(data);
        let sections = source.meta.value_type.kind().sections.iter();
        let ranks = sections.filter(|kind| matches!(kind.holds, Holds::Ranks));
        let ranks: Vec<Vec<u8>> = ranks
            .map(|kind| self.layout().section_prefix(source.data(), kind.section))
            .collect();
        let is_of_ranks = |key: &Bytes| ranks.iter().any(|prefix| key.starts_with(prefix));
        let mut pages = Pages::new(self, KeyRange::children(&from_prefix), false, 0);
        while let Some(rows) = pages.next().await? {
            for row in rows {
                if self.layout().is_meta_copy(&row.key) || is_of_ranks(&row.key) {
                    continue;
                }
                let Some(suffix) = row.key.strip_prefix(from_prefix.as_slice()) else {
                    return Err(StoreError::Corrupt("row outside the range that was read").into());
                };
                let key = [to_prefix.as_slice(), suffix].concat();
                self.transaction.set(&key, &row.value);
            }
            if self.transaction.size_bytes() > self.environment.capabilities.transaction_bytes_max {
                return Ok(());
            }
        }
        to.put(name, meta, length).await?;
        Ok(())
    }
}

/// A key as it is sent to another server.
#[derive(Debug, Clone)]
pub struct Departure {
    /// Its name.
    pub name: Bytes,
    /// Its value in Redis's serialization.
    pub payload: Bytes,
    /// When it expires.
    pub expire_at_ms: Option<i64>,
    /// Detects later changes of the key.
    fingerprint: Option<Bytes>,
}

impl ReadContext<'_> {
    /// A key to be sent, if it exists.
    ///
    /// # Errors
    /// See [`Self::dump`].
    pub async fn departure(&self, name: &Bytes) -> Result<Option<Departure>, CommandError> {
        let Some(key) = self.find_any(name).await? else {
            return Ok(None);
        };
        let Some(payload) = self.dump(&key).await? else {
            return Ok(None);
        };
        Ok(Some(Departure {
            name: name.clone(),
            payload,
            expire_at_ms: key.meta.expire_at_ms,
            fingerprint: self.fingerprint(name).await?,
        }))
    }
}

impl WriteContext<'_> {
    /// Removes a key that the other server has received, unless it has changed since it was read. Returns whether it is
    /// gone.
    pub async fn depart(&self, departure: &Departure) -> Result<bool, CommandError> {
        let name = &departure.name;
        let Some(key) = self.find_any(name).await? else {
            // The key has expired meanwhile, or someone removed it and the other server still has it.
            let expires = departure.expire_at_ms;
            return Ok(expires.is_some_and(|at_ms| at_ms <= self.now_ms));
        };
        // The payload lacks elements that older servers have popped but not delivered yet. If such a server dies, they
        // return to the key.
        if self.fingerprint(name).await? != departure.fingerprint || self.has_grants(&key).await? {
            return Ok(false);
        }
        self.remove(&key);
        self.notify(EventClasses::GENERIC, "del", name);
        Ok(true)
    }
}
