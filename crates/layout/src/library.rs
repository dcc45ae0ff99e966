//! Libraries of functions, by their names.

use foundationdb_tuple::{Bytes as TupleBytes, pack_into};

use super::{DecodeError, KeyRange, Layout, Space, corrupt, take, with_byte};

const FORMAT: u8 = 1;

/// The second tuple element of the space. Scripts have the others.
#[repr(u8)]
enum Kind {
    /// `(11, 2, name)`: a library; `(11, 2, name, number)`: a piece of its functions and code.
    Libraries = 2,
    /// `(11, 4)`: the version of all libraries.
    Version = 4,
}

/// The content of a library's first row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredLibrary {
    /// A random number that no other library has, not even an earlier one with this name.
    pub id: u64,
    /// Number of bytes of its pieces that list its functions. The rest is its code.
    pub functions_bytes: u64,
    /// Bytes of its code.
    pub code_bytes: u64,
}

/// The stored form of a function, besides its library's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFunction {
    /// Its name.
    pub name: String,
    /// Its description, if its library gives one.
    pub description: Option<Vec<u8>>,
    /// Its flags, a bit each.
    pub flags: u8,
}

impl StoredLibrary {
    /// The row's value.
    pub fn encode(&self) -> Vec<u8> {
        let mut value = vec![FORMAT];
        pack_into(
            &(self.id, self.functions_bytes, self.code_bytes),
            &mut value,
        );
        value
    }

    /// Reads a row's value.
    ///
    /// # Errors
    /// If the format is unknown.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let Some((&FORMAT, mut rest)) = value.split_first() else {
            return corrupt("format of a library");
        };
        Ok(Self {
            id: take(&mut rest, "number of a library")?,
            functions_bytes: take(&mut rest, "length of a library's functions")?,
            code_bytes: take(&mut rest, "length of a library's code")?,
        })
    }
}

impl StoredFunction {
    /// Appends it to the bytes that the pieces of its library contain.
    pub fn encode_into(&self, bytes: &mut Vec<u8>) {
        let description = self.description.as_deref().map(TupleBytes::from);
        let flags = u64::from(self.flags);
        pack_into(&(self.name.as_str(), description, flags), bytes);
    }

    /// Reads the functions of a library.
    ///
    /// # Errors
    /// If the bytes are not functions.
    pub fn decode_all(mut bytes: &[u8]) -> Result<Vec<Self>, DecodeError> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let name = take(&mut bytes, "name of a function")?;
            let description: Option<TupleBytes<'_>> = take(&mut bytes, "text on a function")?;
            let flags: u64 = take(&mut bytes, "flags of a function")?;
            let Ok(flags) = u8::try_from(flags) else {
                return corrupt("flags of a function");
            };
            all.push(Self {
                name,
                description: description.map(TupleBytes::into_owned),
                flags,
            });
        }
        Ok(all)
    }
}

impl Layout {
    /// The version of the libraries: a random number that changes with them.
    pub fn libraries_version_key(&self) -> Vec<u8> {
        self.pack(Space::Scripts, &(Kind::Version as u64,))
    }

    /// A library's first row.
    pub fn library_key(&self, name: &str) -> Vec<u8> {
        self.pack(Space::Scripts, &(Kind::Libraries as u64, name))
    }

    /// A piece of a library's functions and code.
    pub fn library_piece_key(&self, name: &str, number: u64) -> Vec<u8> {
        self.pack(Space::Scripts, &(Kind::Libraries as u64, name, number))
    }

    /// All rows of a library.
    pub fn library_rows(&self, name: &str) -> KeyRange {
        let begin = self.library_key(name);
        KeyRange {
            end: with_byte(&begin, 0xff),
            begin,
        }
    }

    /// All libraries, by name.
    pub fn all_libraries(&self) -> KeyRange {
        KeyRange::children(&self.pack(Space::Scripts, &(Kind::Libraries as u64,)))
    }

    /// The library's name in a key, and the number of the piece if it is one.
    ///
    /// # Errors
    /// If the key is not the key of a library.
    pub fn read_library_key(&self, key: &[u8]) -> Result<(String, Option<u64>), DecodeError> {
        let mut rest = self.strip(Space::Scripts, key)?;
        let _: u64 = take(&mut rest, "kind of a library's row")?;
        let name = take(&mut rest, "name of a library")?;
        let number = match rest.is_empty() {
            true => None,
            false => Some(take(&mut rest, "number of a library's piece")?),
        };
        Ok((name, number))
    }
}
