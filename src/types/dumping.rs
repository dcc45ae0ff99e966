//! Whole values in Redis's serialization, as DUMP reads and RESTORE writes them.

use bytes::Bytes;

use crate::dump::{DumpError, ListElements, ListWriter, Serialized, SetWriter, small_set};
use crate::error::CommandError;
use crate::layout::{ValueType, corrupt};
use crate::limits::{
    DUMP_BYTES_MAX, DUMP_SMALL_SET_MEMBERS_MAX, RANGE_PAGE_ROWS, RESTORE_MEMBERS_FIRST_LOOK,
};

use super::context::{ReadContext, WriteContext};
use super::key::OpenKey;
use super::list::{End, elements};
use super::pages::Pages;
use super::sorted_set::{ScoredMember, score_rows};

/// A value that was read from a payload to its end, found to be sound, and not known to be more
/// than one transaction can hold.
#[derive(Debug, Clone)]
pub enum Restorable {
    /// A list that is not empty.
    List(ListElements),
    /// Distinct members, at least one, in Redis's order.
    SortedSet(Vec<ScoredMember>),
}

impl ReadContext<'_> {
    /// A key's value in Redis's serialization.
    ///
    /// # Errors
    /// `Text` where that is more than [`DUMP_BYTES_MAX`], or where Redis does not know the type;
    /// when the store fails.
    pub async fn dump(&self, key: &OpenKey) -> Result<Bytes, CommandError> {
        match key.meta.value_type {
            ValueType::List => self.dump_list(key).await,
            ValueType::SortedSet => self.dump_set(key).await,
            ValueType::PriorityQueue => Err(CommandError::text(
                "ERR DUMP has no serialization for values of type pqueue, which Redis does not know",
            )),
            ValueType::TaskQueue => Err(CommandError::text(
                "ERR DUMP has no serialization for values of type taskqueue, which Redis does not know",
            )),
        }
    }

    async fn dump_list(&self, key: &OpenKey) -> Result<Bytes, CommandError> {
        let (range, _) = elements(self, key.data());
        let mut pages = Pages::new(self, range, false, 0);
        let mut writer = ListWriter::new();
        while let Some(rows) = pages.next().await? {
            for row in rows {
                writer.push(&self.load_value(key.data(), &row.value).await?);
                check_size(writer.size_bytes())?;
            }
        }
        Ok(writer.finish())
    }

    async fn dump_set(&self, key: &OpenKey) -> Result<Bytes, CommandError> {
        let (range, _) = score_rows(self, key.data());
        let length = self.length(key, self.isolation).await?;
        let length = u64::try_from(length).unwrap_or(0);
        if length <= DUMP_SMALL_SET_MEMBERS_MAX as u64 {
            let rows = Pages::new(self, range.clone(), false, 0)
                .slice(0, DUMP_SMALL_SET_MEMBERS_MAX)
                .await?;
            let members = self.zset_scored_members(key, &rows).await?;
            let members: Vec<_> = members
                .into_iter()
                .map(|one| (one.member, one.score))
                .collect();
            if let Some(payload) = small_set(&members) {
                return Ok(payload);
            }
        }
        let mut writer = SetWriter::new(length);
        let mut pages = Pages::new(self, range, true, 0);
        let mut count = 0;
        while let Some(rows) = pages.next().await? {
            // One by one: long members of a whole page may be much.
            for row in &rows {
                for one in self
                    .zset_scored_members(key, std::slice::from_ref(row))
                    .await?
                {
                    writer.push(&one.member, one.score);
                }
                check_size(writer.size_bytes())?;
                count += 1;
            }
        }
        if count == length {
            Ok(writer.finish())
        } else {
            Ok(corrupt("a set has another length than is counted")?)
        }
    }

    /// Reads a payload's value to its end.
    ///
    /// # Errors
    /// `Payload` where it is not sound; `TooLarge` where one transaction of the store cannot hold
    /// it for certain.
    pub fn restorable(&self, value: Serialized) -> Result<Restorable, CommandError> {
        let mut room = self.room();
        match value {
            Serialized::List(elements) => {
                let mut is_empty = true;
                // Only read: elements are unpacked again when they are written, rather than kept.
                for element in elements.clone() {
                    room.take_element(element?.len())?;
                    is_empty = false;
                }
                if is_empty {
                    return Err(DumpError::Format.into());
                }
                Ok(Restorable::List(elements))
            }
            Serialized::SortedSet(members) => {
                let mut read = Vec::new();
                let mut next_look = RESTORE_MEMBERS_FIRST_LOOK;
                for member in members {
                    let (member, score) = member?;
                    room.take_member(member.len())?;
                    read.push(ScoredMember { member, score });
                    // A few bytes can stand for millions of equal members.
                    if read.len() == next_look {
                        check_distinct(&mut read)?;
                        next_look = next_look.saturating_mul(2);
                    }
                }
                check_distinct(&mut read)?;
                if read.is_empty() {
                    return Err(DumpError::Format.into());
                }
                read.sort_unstable_by(ScoredMember::order);
                Ok(Restorable::SortedSet(read))
            }
        }
    }
}

/// Whether no member comes twice; puts them into the order of their bytes.
fn check_distinct(members: &mut [ScoredMember]) -> Result<(), DumpError> {
    members.sort_unstable_by(|one, other| one.member.cmp(&other.member));
    let is_distinct = members
        .windows(2)
        .all(|pair| !matches!(pair, [one, other] if one.member == other.member));
    if is_distinct {
        Ok(())
    } else {
        Err(DumpError::Format)
    }
}

fn check_size(bytes: usize) -> Result<(), CommandError> {
    if bytes > DUMP_BYTES_MAX {
        return Err(CommandError::Text(
            format!("ERR value is too large for DUMP (more than {DUMP_BYTES_MAX} bytes)").into(),
        ));
    }
    Ok(())
}

impl WriteContext<'_> {
    /// Puts a value in place of whatever is at `name`.
    ///
    /// Where it turns out larger than a transaction may be, this stops in the middle: the
    /// executor refuses the command for its size, and nothing of it is kept.
    ///
    /// # Errors
    /// `Text` where keys leave no room for so many long members; when the store fails.
    pub async fn restore(
        &self,
        name: &Bytes,
        value: Restorable,
        expire_at_ms: Option<i64>,
    ) -> Result<(), CommandError> {
        let mut elements = match value {
            Restorable::List(elements) => elements,
            Restorable::SortedSet(members) => {
                self.zset_store(name, &members).await?;
                if expire_at_ms.is_some()
                    && let Some(mut key) = self.find_any(name).await?
                {
                    self.set_expiry(&mut key, expire_at_ms);
                }
                return Ok(());
            }
        };
        let key = self.create(name, ValueType::List, expire_at_ms).await?;
        loop {
            let page: Result<Vec<Bytes>, _> = elements.by_ref().take(RANGE_PAGE_ROWS).collect();
            let page = page?;
            if page.is_empty() {
                return Ok(());
            }
            self.list_push(&key, &page, End::Right).await?;
            if self.transaction.size_bytes() > self.environment.capabilities.transaction_bytes_max {
                return Ok(());
            }
        }
    }
}
