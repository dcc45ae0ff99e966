//! The representation that Redis 7.2 would have, with its default limits: for OBJECT ENCODING, and for
//! HSCAN, SSCAN and ZSCAN, which answer a compact value whole.
//!
//! Redis keeps a large representation when the value shrinks again. Here only the value counts.

use bytes::Bytes;

use quoin_layout::{Entry, ValueType};
use quoin_rdb::SMALL_SET_NUMBERS_MAX;
use quoin_store::StoreError;

use super::context::ReadContext;
use super::fields::canonical_number;
use super::key::OpenKey;
use super::sorted_set::ScoredMember;

/// Bytes of the longest string within its object (Redis: `OBJ_ENCODING_EMBSTR_SIZE_LIMIT`).
const EMBEDDED_BYTES_MAX: u64 = 44;
/// Digits of the longest integer, with its sign.
const INTEGER_BYTES_MAX: u64 = 20;
/// Members of a listpack (`set-max-listpack-entries`, `zset-max-listpack-entries`).
const LISTPACK_MEMBERS_MAX: usize = 128;
/// Fields of one (`hash-max-listpack-entries`).
const LISTPACK_FIELDS_MAX: usize = 512;
/// Bytes of its longest element (`set-max-listpack-value` and its kin).
const LISTPACK_VALUE_BYTES_MAX: usize = 64;
/// Elements of a list that are read at once.
const PAGE_ELEMENTS: i64 = 128;
/// Bytes of a list that is one listpack (`list-max-listpack-size -2`), and what an element takes at
/// least.
const LISTPACK_BYTES_MAX: usize = 8 * 1_024;
const LISTPACK_ELEMENT_BYTES_MIN: usize = 2;

fn is_number(member: &Entry) -> bool {
    canonical_number(&member.name).is_some()
}

fn is_short(value: &Bytes) -> bool {
    value.len() <= LISTPACK_VALUE_BYTES_MAX
}

impl ReadContext<'_> {
    pub(super) async fn string_encoding(&self, key: &OpenKey) -> Result<&'static str, StoreError> {
        match self.string_length(key).await? {
            ..=INTEGER_BYTES_MAX if canonical_number(&self.string_get(key).await?).is_some() => {
                Ok("int")
            }
            ..=EMBEDDED_BYTES_MAX => Ok("embstr"),
            _ => Ok("raw"),
        }
    }

    pub(super) async fn hash_encoding(&self, key: &OpenKey) -> Result<&'static str, StoreError> {
        match self.compact_fields(key).await? {
            Some(_) => Ok("listpack"),
            None => Ok("hashtable"),
        }
    }

    pub(super) async fn set_encoding(&self, key: &OpenKey) -> Result<&'static str, StoreError> {
        match self.compact_fields(key).await? {
            Some(members) if members.iter().all(is_number) => Ok("intset"),
            Some(_) => Ok("listpack"),
            None => Ok("hashtable"),
        }
    }

    /// All fields of a hash or members of a set, if Redis keeps it in a compact encoding, which it
    /// also scans whole.
    pub(super) async fn compact_fields(
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

    /// All members of a sorted set in Redis's order, if it keeps the set in its compact encoding,
    /// which it also scans whole.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn compact_members(
        &self,
        key: &OpenKey,
    ) -> Result<Option<Vec<ScoredMember>>, StoreError> {
        let members = self.zset_all_of_small(key, LISTPACK_MEMBERS_MAX).await?;
        Ok(members.filter(|members| members.iter().all(|one| is_short(&one.member))))
    }

    pub(super) async fn zset_encoding(&self, key: &OpenKey) -> Result<&'static str, StoreError> {
        match self.compact_members(key).await? {
            Some(_) => Ok("listpack"),
            None => Ok("skiplist"),
        }
    }

    pub(super) async fn list_encoding(&self, key: &OpenKey) -> Result<&'static str, StoreError> {
        let length = self.length(key, self.isolation).await?;
        let most = LISTPACK_BYTES_MAX / LISTPACK_ELEMENT_BYTES_MIN;
        if usize::try_from(length).is_ok_and(|length| length > most) {
            return Ok("quicklist");
        }
        let (mut begin, mut bytes) = (0, 0);
        while begin < length {
            let page = self
                .list_range(key, begin, begin + PAGE_ELEMENTS - 1)
                .await?;
            if page.is_empty() {
                break;
            }
            begin += PAGE_ELEMENTS;
            let sizes = page
                .iter()
                .map(|one| one.len() + LISTPACK_ELEMENT_BYTES_MIN);
            bytes += sizes.sum::<usize>();
            if bytes > LISTPACK_BYTES_MAX {
                return Ok("quicklist");
            }
        }
        Ok("listpack")
    }
}
