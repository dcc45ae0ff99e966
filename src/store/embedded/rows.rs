//! Reading rows out of LMDB: the same for snapshots and for the transaction that writes.

use std::ops::Bound;

use heed::{AnyTls, RoTxn};

use super::Rows;
use super::error::store_error;
use crate::store::page::{self, Row};
use crate::store::{KeyValue, RangeQuery, StoreError};

/// The bytes of one key. An empty key, or one longer than LMDB takes, cannot be there.
pub(super) fn get<'t>(
    rows: &Rows,
    transaction: &'t RoTxn<'_, AnyTls>,
    key: &[u8],
) -> Result<Option<&'t [u8]>, StoreError> {
    match rows.get(transaction, key) {
        Ok(value) => Ok(value),
        Err(heed::Error::Mdb(heed::MdbError::BadValSize)) => Ok(None),
        Err(error) => Err(store_error(error)),
    }
}

/// The rows of a range, copied into one buffer that all of them share.
pub(super) fn get_range(
    rows: &Rows,
    transaction: &RoTxn<'_, AnyTls>,
    query: &RangeQuery<'_>,
) -> Result<Vec<KeyValue>, StoreError> {
    if query.limit == 0 || query.begin >= query.end {
        return Ok(Vec::new());
    }
    if query.limit == 1 {
        return Ok(one_row(rows, transaction, query)?.into_iter().collect());
    }
    // LMDB takes no empty key as a bound.
    let begin = if query.begin.is_empty() {
        Bound::Unbounded
    } else {
        Bound::Included(query.begin)
    };
    let range = (begin, Bound::Excluded(query.end));
    let found: Result<Vec<Row>, heed::Error> = if query.reverse {
        rows.rev_range(transaction, &range)
            .and_then(|found| found.take(query.limit).collect())
    } else {
        rows.range(transaction, &range)
            .and_then(|found| found.take(query.limit).collect())
    };
    Ok(page::pack(&found.map_err(store_error)?))
}

/// The head or the tail of a range, by one seek: what every push and pop asks for.
fn one_row(
    rows: &Rows,
    transaction: &RoTxn<'_, AnyTls>,
    query: &RangeQuery<'_>,
) -> Result<Option<KeyValue>, StoreError> {
    let found = if query.reverse {
        rows.get_lower_than(transaction, query.end)
    } else if query.begin.is_empty() {
        rows.first(transaction)
    } else {
        rows.get_greater_than_or_equal_to(transaction, query.begin)
    };
    let Some((key, value)) = found.map_err(store_error)? else {
        return Ok(None);
    };
    if key < query.begin || key >= query.end {
        return Ok(None);
    }
    Ok(page::pack(&[(key, value)]).pop())
}
