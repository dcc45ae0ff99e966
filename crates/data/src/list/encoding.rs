//! The representation that Redis would have of a list.

use quoin_store::StoreError;

use crate::keyspace::key::OpenKey;
use crate::unit::context::ReadContext;

/// Elements that are read at once.
const PAGE_ELEMENTS: i64 = 128;
/// Bytes of a list that is one listpack (`list-max-listpack-size -2`), and what an element takes at
/// least.
const LISTPACK_BYTES_MAX: usize = 8 * 1_024;
const LISTPACK_ELEMENT_BYTES_MIN: usize = 2;

impl ReadContext<'_> {
    pub(crate) async fn list_encoding(&self, key: &OpenKey) -> Result<&'static str, StoreError> {
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
