//! Reads rows from LMDB.

use heed::{AnyTls, RoTxn};

use super::error::store_error;
use super::table::Rows;
use quoin_store::page::{self, Row};
use quoin_store::{KeyValue, RangeQuery, StoreError};

/// The value of one key. `None` for an empty key, or one that is too long for LMDB.
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

/// The rows of a range, copied into one shared buffer. Ends with the row at which keys and values
/// reach `bytes_max`.
pub(super) fn get_page(
    rows: &Rows,
    transaction: &RoTxn<'_, AnyTls>,
    query: &RangeQuery<'_>,
    bytes_max: usize,
) -> Result<Vec<KeyValue>, StoreError> {
    if query.limit == 0 || query.begin >= query.end {
        return Ok(Vec::new());
    }
    let is_inside = |row: &Row<'_>| row.0 >= query.begin && row.0 < query.end;
    // Every push and pop asks for the first or last row of a range, which takes one seek.
    let edge = if query.reverse {
        query.end
    } else {
        query.begin
    };
    let first = rows.next_to(transaction, edge, query.reverse);
    let Some(first) = first.map_err(store_error)?.filter(is_inside) else {
        return Ok(Vec::new());
    };
    let mut found = vec![first];
    let mut bytes = first.0.len() + first.1.len();
    if query.limit > 1 && bytes < bytes_max {
        let steps = rows.walk(transaction, first.0, query.reverse);
        for row in steps.map_err(store_error)? {
            let row = row.map_err(store_error)?;
            if !is_inside(&row) {
                break;
            }
            bytes += row.0.len() + row.1.len();
            found.push(row);
            if found.len() >= query.limit || bytes >= bytes_max {
                break;
            }
        }
    }
    Ok(page::pack(&found))
}
