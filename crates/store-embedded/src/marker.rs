//! The marker: the file that makes a folder a data folder of Quoin.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use quoin_base::random::Random;

use super::create::{private_file, replace_file};
use super::error::may_pass;

pub(super) const MARKER_FILE: &str = "QUOIN";
const MARKER_NEW_FILE: &str = "QUOIN.new";
/// The beginning of the file's first line.
const TITLE: &str = "Quoin data folder";
/// The format of the folder and its files.
pub(super) const FOLDER_FORMAT: u32 = 3;
/// Maximum bytes of the file that are read.
const MARKER_BYTES_MAX: u64 = 4096;

/// The id of a store. It is random and never changes. A restored store gets a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreId([u64; 2]);

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.0;
        write!(f, "{first:016x}{second:016x}")
    }
}

impl StoreId {
    /// Its bytes, in the order of its text form.
    pub fn to_bytes(self) -> [u8; 16] {
        let [first, second] = self.0.map(u64::to_be_bytes);
        let mut bytes = [0; 16];
        for (to, from) in bytes.iter_mut().zip(first.into_iter().chain(second)) {
            *to = from;
        }
        bytes
    }

    /// The id with these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let (first, second) = bytes.split_at(8);
        let half = |half: &[u8]| u64::from_be_bytes(half.try_into().unwrap_or_default());
        Self([half(first), half(second)])
    }

    pub(super) fn new(random: &dyn Random) -> Self {
        Self([random.next_u64(), random.next_u64()])
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (first, second) = text.split_at_checked(16)?;
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let half = |half| u64::from_str_radix(half, 16).ok();
        is_hex.then_some(Self([half(first)?, half(second)?]))
    }
}

/// What a marker says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marker {
    pub(super) format: u32,
    pub(super) id: StoreId,
}

/// The state of a folder's marker.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MarkerState {
    Absent,
    /// It exists but cannot be parsed.
    Damaged,
    Present(Marker),
}

impl Marker {
    pub(super) fn new(random: &dyn Random) -> Self {
        Self {
            format: FOLDER_FORMAT,
            id: StoreId::new(random),
        }
    }

    pub(super) fn read(folder: &Path) -> io::Result<MarkerState> {
        let file = match File::open(folder.join(MARKER_FILE)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(MarkerState::Absent);
            }
            Err(error) => return Err(error),
        };
        let mut text = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(file, MARKER_BYTES_MAX), &mut text)?;
        let marker = std::str::from_utf8(&text).ok().and_then(Self::parse);
        Ok(marker.map_or(MarkerState::Damaged, MarkerState::Present))
    }

    /// Ignores further lines, which later formats may have.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if !lines.next()?.starts_with(TITLE) {
            return None;
        }
        let mut field = |name: &str| {
            let value = lines.next()?.strip_prefix(name)?;
            value.strip_prefix(' ')
        };
        let format = field("format")?.parse().ok()?;
        let id = StoreId::parse(field("id")?)?;
        Some(Self { format, id })
    }

    /// Writes the marker atomically.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let text = self.text();
        replace_file(folder, MARKER_FILE, MARKER_NEW_FILE, text.as_bytes())
    }

    /// Overwrites the existing marker in place, if both have the same length.
    fn overwrite(&self, folder: &Path, there: Self) -> io::Result<()> {
        if self.text().len() != there.text().len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut file = private_file().open(folder.join(MARKER_FILE))?;
        file.write_all(self.text().as_bytes())?;
        file.sync_all()
    }

    fn text(&self) -> String {
        format!(
            "{TITLE}: the files beside this one are a store. Do not change, remove or copy them \
             while its server runs.\nformat {}\nid {}\n",
            self.format, self.id
        )
    }
}

/// Raises an older format in the folder's marker to this one.
pub(super) fn raise_format(folder: &Path) -> io::Result<()> {
    match Marker::read(folder)? {
        MarkerState::Present(marker) if marker.format < FOLDER_FORMAT => {
            let raised = Marker {
                format: FOLDER_FORMAT,
                ..marker
            };
            match raised.write(folder) {
                // A full disk must not keep a store from opening. The texts differ in one digit, so
                // the file's existing block takes the new text, either completely or not at all.
                Err(error) if may_pass(&error) => raised.overwrite(folder, marker),
                written => written,
            }
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quoin_base::random::SeededRandom;

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Marker::read(folder.path()).unwrap(), MarkerState::Absent);
        let marker = Marker::new(&SeededRandom::new(1));
        marker.write(folder.path()).unwrap();
        let read = Marker::read(folder.path()).unwrap();
        assert_eq!(read, MarkerState::Present(marker));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_marker_is_overwritten_where_there_is_no_room_for_another() {
        let folder = tempfile::tempdir().unwrap();
        let older = Marker {
            format: FOLDER_FORMAT - 1,
            ..Marker::new(&SeededRandom::new(1))
        };
        older.write(folder.path()).unwrap();
        let raised = Marker {
            format: FOLDER_FORMAT,
            ..older
        };
        raised.overwrite(folder.path(), older).unwrap();
        let read = Marker::read(folder.path()).unwrap();
        assert_eq!(read, MarkerState::Present(raised));
        let longer = Marker {
            format: 10,
            ..older
        };
        assert!(longer.overwrite(folder.path(), raised).is_err());
    }

    #[test]
    fn an_id_has_the_bytes_that_are_shown() {
        let id = StoreId([0x0123_4567_89ab_cdef, 7]);
        let bytes = id.to_bytes();
        assert_eq!(quoin_base::secret::hex(bytes), id.to_string());
        assert_eq!(StoreId::from_bytes(bytes), id);
    }

    #[test]
    fn its_text_is_this() {
        let marker = Marker {
            format: 3,
            id: StoreId([1, 0xabc]),
        };
        let text = marker.text();
        let (title, rest) = text.split_once('\n').unwrap();
        assert!(title.starts_with("Quoin data folder"));
        assert_eq!(rest, "format 3\nid 00000000000000010000000000000abc\n");
    }

    #[test]
    fn a_newer_one_with_more_lines_is_understood() {
        let text = "Quoin data folder\nformat 7\nid 0123456789abcdef0123456789abcdef\nmore\n";
        assert_eq!(Marker::parse(text).unwrap().format, 7);
    }

    #[test]
    fn an_older_format_is_raised_and_a_newer_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let id = StoreId([1, 2]);
        for (format, raised) in [(2, FOLDER_FORMAT), (FOLDER_FORMAT, FOLDER_FORMAT), (9, 9)] {
            Marker { format, id }.write(folder.path()).unwrap();
            raise_format(folder.path()).unwrap();
            let expected = Marker { format: raised, id };
            let read = Marker::read(folder.path()).unwrap();
            assert_eq!(read, MarkerState::Present(expected));
        }
    }

    #[test]
    fn damaged_ones_differ_from_missing_ones() {
        let id = "0123456789abcdef0123456789abcdef";
        for text in [
            String::new(),
            format!("Another program\nformat 2\nid {id}\n"),
            format!("Quoin data folder\nformat two\nid {id}\n"),
            "Quoin data folder\nformat 2\n".to_owned(),
            "Quoin data folder\nformat 2\nid 0123\n".to_owned(),
            format!("Quoin data folder\nformat 2\nid +{}\n", &id[1..]),
        ] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join(MARKER_FILE), &text).unwrap();
            let read = Marker::read(folder.path()).unwrap();
            assert_eq!(read, MarkerState::Damaged, "{text:?}");
        }
    }
}
