//! Keys: as clients name them, and as found in a transaction.

use bytes::Bytes;

use quoin_layout::{Id, KeyName, Meta};

/// A key as seen by clients.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientKey {
    /// The number of its database.
    pub database: u32,
    /// Its name.
    pub key: Bytes,
}

/// A key that was found or created in this transaction.
#[derive(Debug, Clone)]
pub struct OpenKey {
    /// The database in which it was looked up; `None` if background work found it.
    pub database: Option<u32>,
    /// Its namespace.
    pub namespace: Id,
    /// Its name as stored.
    pub name: KeyName,
    /// The key of its metadata row.
    pub meta_key: Vec<u8>,
    /// Its metadata.
    pub meta: Meta,
}

impl OpenKey {
    /// The id of the key's data.
    pub fn data(&self) -> Id {
        self.meta.data
    }

    /// The key as seen by clients.
    pub(crate) fn client_key(&self) -> Option<ClientKey> {
        let key = self.meta.full_name(&self.name).ok()?.clone();
        let database = self.database?;
        Some(ClientKey { database, key })
    }
}
