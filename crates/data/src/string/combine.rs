//! BITOP: strings of which each bit follows from the same bit of others.

use bytes::{Bytes, BytesMut};

use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::BODY_BYTES_MAX;
use crate::unit::context::WriteContext;

use super::{PAGE_PIECES, PIECE, padded};

/// Bytes that are combined at a time.
const CHUNK: u64 = PAGE_PIECES as u64 * PIECE;

/// How bits are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combination {
    /// Set where all are set.
    And,
    /// Set where any is set.
    Or,
    /// Set where an odd number is set.
    Xor,
    /// Of one string: set where it is not.
    Not,
}

impl WriteContext<'_> {
    /// Combines strings, which zeros lengthen to the longest, and puts the result in place of what
    /// is at `name`. Answers its length. Where that is 0, nothing is changed.
    ///
    /// Where the result turns out larger than a transaction may be, this stops in the middle: the
    /// executor refuses the command for its size, and nothing of it is kept.
    ///
    /// # Errors
    /// `KeyNameTooLong`.
    pub async fn string_combine(
        &self,
        combination: Combination,
        sources: &[Option<OpenKey>],
        name: &Bytes,
    ) -> Result<u64, CommandError> {
        let mut strings = Vec::with_capacity(sources.len());
        for source in sources {
            let length = match source {
                Some(key) => self.string_length(key).await?,
                None => 0,
            };
            strings.push((source.as_ref(), length));
        }
        let length = strings.iter().map(|(_, length)| *length).max();
        let length = length.unwrap_or(0);
        if length == 0 {
            return Ok(0);
        }
        if length <= BODY_BYTES_MAX as u64 {
            let value = self.combined(combination, &strings, 0, length).await?;
            self.string_set(name, &value.freeze(), None).await?;
            return Ok(length);
        }
        let data = self.environment.ids.allocate();
        let mut begin = 0;
        while begin < length {
            let end = length.min(begin + CHUNK);
            let value = self.combined(combination, &strings, begin, end).await?;
            self.write_new_pieces(data, begin, &value);
            if self.transaction.size_bytes() > self.environment.capabilities.transaction_bytes_max {
                return Ok(length);
            }
            begin = end;
        }
        let signed = i64::try_from(length).unwrap_or(i64::MAX);
        self.string_adopt(name, data, signed, None).await?;
        Ok(length)
    }

    /// The bytes `begin..end` of the result.
    async fn combined(
        &self,
        combination: Combination,
        strings: &[(Option<&OpenKey>, u64)],
        begin: u64,
        end: u64,
    ) -> Result<BytesMut, CommandError> {
        let mut result = None;
        for (key, length) in strings {
            let part = match key {
                Some(key) if *length > begin => {
                    self.string_range(key, begin, end.min(*length)).await?
                }
                _ => Bytes::new(),
            };
            result = Some(match result {
                Some(result) => combine(combination, result, &part),
                None => padded(&part, end - begin),
            });
        }
        let mut result = result.unwrap_or_default();
        if combination == Combination::Not {
            result.iter_mut().for_each(|byte| *byte = !*byte);
        }
        Ok(result)
    }
}

fn combine(combination: Combination, mut result: BytesMut, part: &[u8]) -> BytesMut {
    let common = part.len().min(result.len());
    let (both, beyond) = result.split_at_mut(common);
    let pairs = both.iter_mut().zip(part);
    match combination {
        Combination::And => {
            pairs.for_each(|(byte, other)| *byte &= other);
            beyond.fill(0);
        }
        Combination::Or => pairs.for_each(|(byte, other)| *byte |= other),
        Combination::Xor => pairs.for_each(|(byte, other)| *byte ^= other),
        Combination::Not => {}
    }
    result
}
