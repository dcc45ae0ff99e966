//! Zipmaps, in which Redis before 2.6 keeps small hashes.

use bytes::Bytes;

use super::DumpError;
use super::reader::Reader;

const END: u8 = 0xff;
/// The first byte of a length that takes four more.
const LONG: u8 = 0xfe;

/// Hands out the fields and values of a zipmap in turn, checking each on the way.
#[derive(Debug, Clone)]
pub(super) struct Zipmap {
    entries: Reader,
    /// What the header says; [`LONG`] and more are not known.
    declared_count: u8,
    /// Fields and values so far.
    count: u64,
}

impl Zipmap {
    pub(super) fn new(blob: &Bytes) -> Result<Self, DumpError> {
        let [declared_count, .., END] = blob.as_ref() else {
            return Err(DumpError::Format);
        };
        Ok(Self {
            entries: Reader::new(blob.slice(1..blob.len() - 1)),
            declared_count: *declared_count,
            count: 0,
        })
    }

    pub(super) fn next(&mut self) -> Result<Option<Bytes>, DumpError> {
        let is_value = self.count % 2 == 1;
        if self.entries.is_empty() && !is_value {
            let is_counted =
                self.declared_count >= LONG || u64::from(self.declared_count) * 2 == self.count;
            return match is_counted {
                true => Ok(None),
                false => Err(DumpError::Format),
            };
        }
        let length = match self.entries.byte()? {
            END => return Err(DumpError::Format),
            LONG => u32::from_le_bytes(self.entries.array()?),
            short => short.into(),
        };
        let free_bytes = match is_value {
            true => self.entries.byte()?,
            false => 0,
        };
        let string = self.entries.take(length.into())?;
        self.entries.take(free_bytes.into())?;
        self.count += 1;
        Ok(Some(string))
    }
}
