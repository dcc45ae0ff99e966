//! Keys as values: as clients name them, and as a transaction has found them.

use bytes::Bytes;

use quoin_layout::{Id, KeyName, Meta};

/// A key as clients know it.
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
    /// The database that it was looked up in; `None` for one that background work came across.
    pub database: Option<u32>,
    /// Its namespace.
    pub namespace: Id,
    /// Its name as it stands in the store.
    pub name: KeyName,
    /// Where its metadata lies.
    pub meta_key: Vec<u8>,
    /// Its metadata.
    pub meta: Meta,
}

impl OpenKey {
    /// Where the key's data lies.
    pub fn data(&self) -> Id {
        self.meta.data
    }

    /// The key as clients know it.
    pub(crate) fn client_key(&self) -> Option<ClientKey> {
        let key = self.meta.full_name(&self.name).ok()?.clone();
        let database = self.database?;
        Some(ClientKey { database, key })
    }
}
