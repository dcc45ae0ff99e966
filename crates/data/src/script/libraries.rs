//! Libraries of functions in the store.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::rows::pages::Pages;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::limits::VALUE_CHUNK_BYTES_MAX;
use quoin_layout::{DecodeError, StoredFunction, StoredLibrary};
use quoin_lua::{Function, FunctionFlags, Libraries, Library};
use quoin_store::{Isolation, StoreError};

const INCOMPLETE: StoreError = StoreError::Corrupt("pieces of a library are missing");

/// A library whose pieces are being read.
struct Opened {
    name: String,
    stored: StoredLibrary,
    bytes: BytesMut,
}

impl Opened {
    fn finish(self) -> Result<Arc<Library>, StoreError> {
        let StoredLibrary {
            id,
            functions_bytes,
            code_bytes,
        } = self.stored;
        let mut code = self.bytes.freeze();
        let split = usize::try_from(functions_bytes).unwrap_or(usize::MAX);
        if code.len() as u64 != functions_bytes.saturating_add(code_bytes) || split > code.len() {
            return Err(INCOMPLETE);
        }
        let functions = StoredFunction::decode_all(&code.split_to(split))?;
        let described = |stored: StoredFunction| Function {
            name: stored.name,
            description: stored.description.map(Bytes::from),
            flags: FunctionFlags(stored.flags),
        };
        Ok(Arc::new(Library {
            id,
            name: self.name,
            code,
            functions: functions.into_iter().map(described).collect(),
        }))
    }
}

impl ReadContext<'_> {
    /// All libraries. The server caches them until they change.
    ///
    /// # Errors
    /// If pieces of a library are missing.
    pub async fn libraries(&self) -> Result<Arc<Libraries>, StoreError> {
        let key = self.layout().libraries_version_key();
        let row = self.transaction.get(&key, Isolation::Serializable).await?;
        let version = match row {
            None => return Ok(Arc::default()),
            Some(row) => <[u8; 8]>::try_from(row.as_ref()),
        };
        let version = version.map_err(|_| DecodeError("version of libraries"))?;
        let version = u64::from_le_bytes(version);
        let known = self.environment.scripts.libraries();
        if known.version == version {
            return Ok(known);
        }
        let libraries = self.load_libraries(version).await?;
        let libraries = Arc::new(libraries);
        let remembered = Arc::clone(&libraries);
        self.environment.scripts.remember_libraries(remembered);
        Ok(libraries)
    }

    async fn load_libraries(&self, version: u64) -> Result<Libraries, StoreError> {
        // Every change of a library changes the version, whose read takes part in conflict detection.
        let mut pages =
            Pages::new(self, self.layout().all_libraries(), false, 0).with_snapshot_reads();
        let mut libraries = Libraries::new(version, []);
        let mut opened: Option<Opened> = None;
        while let Some(rows) = pages.next().await? {
            for row in &rows {
                let (name, number) = self.layout().read_library_key(&row.key)?;
                match (&mut opened, number) {
                    (Some(library), Some(_)) if library.name == name => {
                        library.bytes.extend_from_slice(&row.value);
                    }
                    (_, Some(_)) => return Err(INCOMPLETE),
                    (_, None) => {
                        let next = Opened {
                            name,
                            stored: StoredLibrary::decode(&row.value)?,
                            bytes: BytesMut::new(),
                        };
                        if let Some(library) = opened.replace(next) {
                            libraries.add(library.finish()?);
                        }
                    }
                }
            }
        }
        if let Some(library) = opened {
            libraries.add(library.finish()?);
        }
        Ok(libraries)
    }
}

impl WriteContext<'_> {
    /// Stores a library and replaces any with the same name.
    pub fn store_library(&self, library: &Library) {
        self.clear_library(&library.name);
        let mut bytes = Vec::new();
        for function in &library.functions {
            let stored = StoredFunction {
                name: function.name.clone(),
                description: function.description.as_deref().map(<[u8]>::to_vec),
                flags: function.flags.0,
            };
            stored.encode_into(&mut bytes);
        }
        let stored = StoredLibrary {
            id: library.id,
            functions_bytes: bytes.len() as u64,
            code_bytes: library.code.len() as u64,
        };
        let layout = self.layout();
        let key = layout.library_key(&library.name);
        self.transaction.set(&key, &stored.encode());
        bytes.extend_from_slice(&library.code);
        for (number, piece) in (0..).zip(bytes.chunks(VALUE_CHUNK_BYTES_MAX)) {
            let key = layout.library_piece_key(&library.name, number);
            self.transaction.set(&key, piece);
        }
        self.change_libraries();
    }

    /// Removes a library.
    pub fn remove_library(&self, name: &str) {
        self.clear_library(name);
        self.change_libraries();
    }

    /// Removes all libraries.
    pub fn remove_libraries(&self) {
        let all = self.layout().all_libraries();
        self.transaction.clear_range(&all.begin, &all.end);
        self.change_libraries();
    }

    fn clear_library(&self, name: &str) {
        let rows = self.layout().library_rows(name);
        self.transaction.clear_range(&rows.begin, &rows.end);
    }

    /// Sets a version that no other attempt to change the libraries has used. Otherwise a server could confuse
    /// libraries of a failed attempt with those of a later one.
    fn change_libraries(&self) {
        let version = self.environment.random.next_u64();
        let key = self.layout().libraries_version_key();
        self.transaction.set(&key, &version.to_le_bytes());
    }
}
