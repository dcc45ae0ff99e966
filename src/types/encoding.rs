//! OBJECT ENCODING: the representation that Redis 7.2 would have, with its default limits.
//!
//! Redis keeps a large representation when the value shrinks again. Here only the value counts.

use bytes::Bytes;

use crate::dump::SMALL_SET_NUMBERS_MAX;
use crate::store::StoreError;

use super::context::ReadContext;
use super::fields::canonical_number;
use super::key::OpenKey;

/// Bytes of the longest string within its object (Redis: `OBJ_ENCODING_EMBSTR_SIZE_LIMIT`).
const EMBEDDED_BYTES_MAX: u64 = 44;
/// Digits of the longest integer, with its sign.
const INTEGER_BYTES_MAX: u64 = 20;
/// Members of a listpack (`set-max-listpack-entries`, `zset-max-listpack-entries`).
pub const LISTPACK_MEMBERS_MAX: usize = 128;
/// Fields of one (`hash-max-listpack-entries`).
const LISTPACK_FIELDS_MAX: i64 = 512;
/// Bytes of its longest element (`set-max-listpack-value` and its kin).
pub const LISTPACK_VALUE_BYTES_MAX: usize = 64;
/// Elements of a list that are read at once.
const PAGE_ELEMENTS: i64 = 128;
/// Bytes of a list that is one listpack (`list-max-listpack-size -2`), and what an element takes at
/// least.
const LISTPACK_BYTES_MAX: usize = 8 * 1_024;
const LISTPACK_ELEMENT_BYTES_MIN: usize = 2;

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
        if self.length(key, self.isolation).await? > LISTPACK_FIELDS_MAX {
            return Ok("hashtable");
        }
        let fields = self.fields_all(key).await?;
        let are_short = fields
            .iter()
            .all(|one| is_short(&one.name) && is_short(&one.value));
        match are_short {
            true => Ok("listpack"),
            false => Ok("hashtable"),
        }
    }

    pub(super) async fn set_encoding(&self, key: &OpenKey) -> Result<&'static str, StoreError> {
        let length = self.length(key, self.isolation).await?;
        if length > SMALL_SET_NUMBERS_MAX as i64 {
            return Ok("hashtable");
        }
        let members = self.fields_all(key).await?;
        let mut names = members.iter().map(|one| &one.name);
        if names.clone().all(|name| canonical_number(name).is_some()) {
            return Ok("intset");
        }
        match members.len() <= LISTPACK_MEMBERS_MAX && names.all(is_short) {
            true => Ok("listpack"),
            false => Ok("hashtable"),
        }
    }

    pub(super) async fn zset_encoding(&self, key: &OpenKey) -> Result<&'static str, StoreError> {
        match self.zset_all_of_small(key, LISTPACK_MEMBERS_MAX).await? {
            Some(members) if members.iter().all(|one| is_short(&one.member)) => Ok("listpack"),
            _ => Ok("skiplist"),
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
