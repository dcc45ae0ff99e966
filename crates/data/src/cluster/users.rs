//! Users in the store of a cluster: their rules by name, and a version that changes with them. This module does not
//! interpret the rules.

use bytes::Bytes;

use crate::error::CommandError;
use crate::rows::pages::Pages;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::limits::{USER_NAME_BYTES_MAX, USER_RULES_BYTES_MAX};
use quoin_layout::{DecodeError, decode_user, encode_user};
use quoin_store::{Isolation, StoreError};

/// A snapshot of the users.
#[derive(Debug, Default)]
pub struct StoredUsers {
    /// The version, or 0 before the first change.
    pub version: u64,
    /// Names and rules.
    pub users: Vec<(Bytes, Bytes)>,
}

impl ReadContext<'_> {
    /// The version of the users, or 0 before the first change.
    pub async fn users_version(&self) -> Result<u64, StoreError> {
        let key = self.layout().users_version_key();
        let row = self.transaction.get(&key, Isolation::Snapshot).await?;
        let Some(row) = row else {
            return Ok(0);
        };
        let version = <[u8; 8]>::try_from(row.as_ref());
        let version = version.map_err(|_| DecodeError("version of users"))?;
        Ok(u64::from_le_bytes(version))
    }

    /// All users.
    pub async fn stored_users(&self) -> Result<StoredUsers, StoreError> {
        let version = self.users_version().await?;
        let mut pages = Pages::new(self, self.layout().all_users(), false, 0).with_snapshot_reads();
        let mut users = Vec::new();
        while let Some(rows) = pages.next().await? {
            for row in &rows {
                let name = self.layout().read_user_key(&row.key)?;
                let rules = Bytes::copy_from_slice(decode_user(&row.value)?);
                users.push((name.into(), rules));
            }
        }
        Ok(StoredUsers { version, users })
    }
}

impl WriteContext<'_> {
    /// The rules of a user. Two changes of one user conflict.
    pub async fn stored_user(&self, name: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let key = self.layout().user_key(name);
        let row = self.transaction.get(&key, Isolation::Serializable).await?;
        let rules = row.map(|row| decode_user(&row).map(Bytes::copy_from_slice));
        Ok(rules.transpose()?)
    }

    /// Stores the rules of a user, replacing existing ones.
    ///
    /// # Errors
    /// If the name or the rules are too long.
    pub fn store_user(&self, name: &[u8], rules: &[u8]) -> Result<(), CommandError> {
        if name.len() > USER_NAME_BYTES_MAX || rules.len() > USER_RULES_BYTES_MAX {
            let line = format!(
                "ERR a user's name has at most {USER_NAME_BYTES_MAX} bytes on this store, and its \
                 rules {USER_RULES_BYTES_MAX}"
            );
            return Err(CommandError::Text(line.into()));
        }
        let key = self.layout().user_key(name);
        self.transaction.set(&key, &encode_user(rules));
        self.change_users();
        Ok(())
    }

    /// Removes a user.
    pub fn remove_user(&self, name: &[u8]) {
        let key = self.layout().user_key(name);
        self.transaction.clear(&key);
        self.change_users();
    }

    /// Removes all users.
    pub fn remove_users(&self) {
        let all = self.layout().all_users();
        self.transaction.clear_range(&all.begin, &all.end);
        self.change_users();
    }

    /// Sets a version that no other change has.
    fn change_users(&self) {
        let version = self.environment.random.next_u64() | 1;
        let key = self.layout().users_version_key();
        self.transaction.set(&key, &version.to_le_bytes());
    }
}
