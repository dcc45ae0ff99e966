//! The representation that Redis would have of a hash or a set.

use quoin_layout::{Entry, ValueType};
use quoin_rdb::SMALL_SET_NUMBERS_MAX;
use quoin_store::StoreError;

use super::canonical_number;
use crate::keyspace::encoding::{LISTPACK_MEMBERS_MAX, is_short};
use crate::keyspace::key::OpenKey;
use crate::unit::context::ReadContext;

/// Fields of a listpack (`hash-max-listpack-entries`).
const LISTPACK_FIELDS_MAX: usize = 512;

fn is_number(member: &Entry) -> bool {
    canonical_number(&member.name).is_some()
}

impl ReadContext<'_> {
    pub(crate) async fn hash_encoding(&self, key: &OpenKey) -> Result<&'static str, StoreError> {
        match self.compact_fields(key).await? {
            Some(_) => Ok("listpack"),
            None => Ok("hashtable"),
        }
    }

    pub(crate) async fn set_encoding(&self, key: &OpenKey) -> Result<&'static str, StoreError> {
        match self.compact_fields(key).await? {
            Some(members) if members.iter().all(is_number) => Ok("intset"),
            Some(_) => Ok("listpack"),
            None => Ok("hashtable"),
        }
    }

    /// All fields of a hash or members of a set, if Redis keeps it in a compact encoding, which it
    /// also scans whole.
    pub(crate) async fn compact_fields(
        &self,
        key: &OpenKey,
    ) -> Result<Option<Vec<Entry>>, StoreError> {
        let is_set = key.meta.value_type == ValueType::Set;
        let most = match is_set {
            true => SMALL_SET_NUMBERS_MAX,
            false => LISTPACK_FIELDS_MAX,
        };
        let length = self.length(key, self.isolation).await?;
        if usize::try_from(length).is_ok_and(|length| length > most) {
            return Ok(None);
        }
        let mut pages = self.fields(key)?;
        let mut all = Vec::new();
        while let Some(page) = pages.next().await? {
            // Before more is read, which may be long too.
            if !page
                .iter()
                .all(|one| is_short(&one.name) && is_short(&one.value))
            {
                return Ok(None);
            }
            all.extend(page);
        }
        let is_compact = !is_set || all.len() <= LISTPACK_MEMBERS_MAX || all.iter().all(is_number);
        Ok(is_compact.then_some(all))
    }
}
