//! The form of the log that the recorder writes and the test reads.
//!
//! ```text
//! entry: kind (1) | flags (1) | 0 (2) | name bytes (4) | file (8) | a (8) | b (8) | nanoseconds (8)
//!        | data bytes (8) | name | data
//! ```
//! Integers are little-endian. `file` is an inode number, and `nanoseconds` a monotonic clock of
//! the whole machine. The meaning of `a`, `b`, `name` and `data` depends on the kind.
#![allow(dead_code, unreachable_pub)] // one of the two crates only writes, the other only reads

/// Bytes in front of name and data.
pub const HEADER_BYTES: usize = 48;

/// The file or folder `name` (a full path) was created.
pub const CREATE: u8 = 1;
/// Data was written at `a`.
pub const WRITE: u8 = 2;
/// `b` zeros were written at `a`.
pub const ZEROS: u8 = 3;
/// The file's length was set to `a`.
pub const TRUNCATE: u8 = 4;
/// A sync (of a file, or of a folder's names) begins. `a` is its number.
pub const SYNC_BEGIN: u8 = 5;
/// The sync with the number `a` has succeeded.
pub const SYNC_END: u8 = 6;
/// `name` is now called `data`.
pub const RENAME: u8 = 7;
/// `name` is no more.
pub const UNLINK: u8 = 8;
/// The file was mapped for writing. Writes to it are not recorded.
pub const MAPPED: u8 = 9;
/// Something happened that the recorder does not understand. `name` says what.
pub const UNSUPPORTED: u8 = 10;

/// `name` and `data` have changed places: `file` is now called `data`, and the file with the
/// inode `a` is called `name`.
pub const EXCHANGE: u8 = 11;

/// Flag of [`CREATE`]: it is a folder.
pub const IS_FOLDER: u8 = 1;
/// Flag of [`WRITE`] and [`ZEROS`]: the file is open with `O_SYNC` or `O_DSYNC`.
pub const IS_SYNCED: u8 = 2;

/// One operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Entry<'e> {
    pub kind: u8,
    pub flags: u8,
    pub file: u64,
    pub a: u64,
    pub b: u64,
    pub nanoseconds: u64,
    pub name: &'e [u8],
    pub data: &'e [u8],
}

impl<'e> Entry<'e> {
    /// The bytes before name and data.
    pub fn header(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        let [name, data] = [self.name.len() as u32, self.data.len() as u32];
        let fields: [&[u8]; 8] = [
            &[self.kind, self.flags, 0, 0],
            &name.to_le_bytes(),
            &self.file.to_le_bytes(),
            &self.a.to_le_bytes(),
            &self.b.to_le_bytes(),
            &self.nanoseconds.to_le_bytes(),
            &data.to_le_bytes(),
            &[0; 4],
        ];
        for (to, from) in header.iter_mut().zip(fields.iter().copied().flatten()) {
            *to = *from;
        }
        header
    }

    /// The entry at the beginning of `log`, and its length. `None` if it is incomplete because the
    /// process was killed while writing it.
    pub fn read(log: &'e [u8]) -> Option<(Self, usize)> {
        let header = log.get(..HEADER_BYTES)?;
        let number = |at: usize| Some(u64::from_le_bytes(header.get(at..at + 8)?.try_into().ok()?));
        let name_bytes = usize::try_from(number(0)? >> 32).ok()?;
        let data_bytes = usize::try_from(number(40)?).ok()?;
        let name_end = HEADER_BYTES + name_bytes;
        let end = name_end + data_bytes;
        let entry = Self {
            kind: *header.first()?,
            flags: *header.get(1)?,
            file: number(8)?,
            a: number(16)?,
            b: number(24)?,
            nanoseconds: number(32)?,
            name: log.get(HEADER_BYTES..name_end)?,
            data: log.get(name_end..end)?,
        };
        Some((entry, end))
    }
}
