//! Looking for the members of one set in another.

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;

use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::ReadContext;
use quoin_layout::{FieldRow, Member};
use quoin_store::StoreError;

/// A set in which members of another are looked for, page by page, in the order of the other.
pub(super) enum Lookup<'c, 't> {
    /// In memory.
    Names(HashSet<Bytes>),
    /// Row by row.
    Rows(&'c ReadContext<'t>, &'c OpenKey),
    /// Both sets are read along, since rows of all sets have one order.
    Merge(Merge<'c, 't>),
}

impl<'c, 't> Lookup<'c, 't> {
    /// A set with up to so many times the members of the other is read whole: reading a row costs
    /// that much less than looking for it.
    pub(super) const MERGE_RATIO: i64 = 8;

    /// Looks for members of `driver` in `other`.
    pub(super) fn new(
        context: &'c ReadContext<'t>,
        driver: &OpenKey,
        other: &'c OpenKey,
        is_near: bool,
    ) -> Result<Self, StoreError> {
        if let Some(body) = &other.meta.body {
            let entries = FieldRow::Set.decode_body(&body.bytes)?;
            return Ok(Lookup::Names(
                entries.into_iter().map(|entry| entry.name).collect(),
            ));
        }
        if driver.meta.body.is_none() && is_near {
            return Ok(Lookup::Merge(Merge::new(context, other)));
        }
        Ok(Lookup::Rows(context, other))
    }

    /// Of each name, whether it is there.
    pub(super) async fn look_up(&mut self, names: &[Bytes]) -> Result<Vec<bool>, StoreError> {
        match self {
            Lookup::Names(known) => Ok(names.iter().map(|name| known.contains(name)).collect()),
            Lookup::Rows(context, key) => context.fields_exist(key, names).await,
            Lookup::Merge(merge) => merge.look_up(names).await,
        }
    }
}

/// Where a set that is read along has come to.
pub(super) struct Merge<'c, 't> {
    context: &'c ReadContext<'t>,
    key: &'c OpenKey,
    pages: Pages<'c, 't>,
    /// Keys of rows that were read and not passed.
    rows: VecDeque<Bytes>,
}

impl<'c, 't> Merge<'c, 't> {
    fn new(context: &'c ReadContext<'t>, key: &'c OpenKey) -> Self {
        let all = context.layout().fields_from(key.data(), FieldRow::Set, 0);
        Self {
            context,
            key,
            pages: Pages::new(context, all, false, 0),
            rows: VecDeque::new(),
        }
    }

    /// The names are in the order of rows, and after those that were looked up before.
    async fn look_up(&mut self, names: &[Bytes]) -> Result<Vec<bool>, StoreError> {
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let name = Member::new(name);
            let row = self
                .context
                .layout()
                .field_key(self.key.data(), FieldRow::Set, &name);
            found.push(self.advance(&row).await?);
        }
        Ok(found)
    }

    /// Goes to a row, or where it would be. Answers whether it is there.
    async fn advance(&mut self, row: &[u8]) -> Result<bool, StoreError> {
        loop {
            while let Some(first) = self.rows.front() {
                if first.as_ref() >= row {
                    return Ok(first.as_ref() == row);
                }
                self.rows.pop_front();
            }
            match self.pages.next().await? {
                Some(rows) => self.rows.extend(rows.into_iter().map(|row| row.key)),
                None => return Ok(false),
            }
        }
    }
}
