//! Pushes.

use bytes::Bytes;

use super::End;
use super::rows::rows_of;
use crate::keyspace::key::OpenKey;
use crate::rows::runs::Pushing;
use crate::unit::context::WriteContext;
use quoin_layout::Position;
use quoin_store::{Isolation, KeyValue, StoreError};

impl WriteContext<'_> {
    /// Adds values at one end, the first of them first (so that LPUSH a b leaves b in front),
    /// and answers the new length as this transaction sees it.
    pub async fn list_push<'v>(
        &self,
        key: &OpenKey,
        values: impl IntoIterator<Item = &'v Bytes>,
        end: End,
    ) -> Result<i64, StoreError> {
        let (range, prefix_length) = rows_of(self, key.data());
        let outermost = self
            .outermost(&range, end == End::Right, Isolation::Snapshot)
            .await?;
        let next_index = match &outermost {
            // Not the same for both ends: where two servers push to an empty list at the same
            // moment, what goes to the head stands in front of what goes to the tail.
            None if end == End::Left => -1,
            None => 0,
            Some(row) => end.beyond(Position::read_index(prefix_length, &row.key)?),
        };
        let random = self.unit_position_random();
        let row_key = |index, start| {
            let mut row = self.layout().elements_prefix(key.data());
            Position::pack_pushed(index, random, start, &mut row);
            row
        };
        let mut pushing = Pushing::new(self, key, end == End::Left, next_index, row_key);
        if let Some(row) = outermost
            && self.is_pushed_by_unit(prefix_length, &row, random)?
        {
            pushing.resume(row)?;
        }
        let mut count = 0;
        for value in values {
            count += 1;
            pushing.push(value);
        }
        pushing.end();
        self.add_length(key, count);
        self.length(key, Isolation::Snapshot).await
    }
}

impl WriteContext<'_> {
    /// Whether this unit of work has pushed a row that pushes with this random number, and nobody else
    /// has seen it.
    fn is_pushed_by_unit(
        &self,
        prefix_length: usize,
        row: &KeyValue,
        random: i64,
    ) -> Result<bool, StoreError> {
        // There, the rows of all units have the same random number. Commands run in series.
        if self.environment.capabilities.single_writer {
            return Ok(false);
        }
        let position = self.layout().read_position(prefix_length, &row.key)?;
        Ok(matches!(position.0[..], [_, of_row, _] if of_row == random))
    }
}

impl End {
    /// The index that comes next.
    fn beyond(self, index: i64) -> i64 {
        match self {
            End::Left => index - 1,
            End::Right => index + 1,
        }
    }
}
