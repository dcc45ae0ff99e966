//! Users of a cluster, by their names.

use foundationdb_tuple::Bytes as TupleBytes;

use super::{DecodeError, KeyRange, Layout, Space, corrupt, take};

const FORMAT: u8 = 1;

/// The second tuple element of the space.
#[repr(u8)]
enum Kind {
    /// `(12, 0)`: the version of all users.
    Version = 0,
    /// `(12, 1, name)`: the rules of a user.
    Users = 1,
}

/// The value of a user's row, from the user's rules.
pub fn encode_user(rules: &[u8]) -> Vec<u8> {
    [&[FORMAT], rules].concat()
}

/// The rules in the value of a user's row.
///
/// # Errors
/// If the format is unknown.
pub fn decode_user(value: &[u8]) -> Result<&[u8], DecodeError> {
    match value.split_first() {
        Some((&FORMAT, rules)) => Ok(rules),
        _ => corrupt("format of a user"),
    }
}

impl Layout {
    /// The version of the users: a random number that changes with them.
    pub fn users_version_key(&self) -> Vec<u8> {
        self.pack(Space::Users, &(Kind::Version as u64,))
    }

    /// A user's row.
    pub fn user_key(&self, name: &[u8]) -> Vec<u8> {
        let name = TupleBytes::from(name);
        self.pack(Space::Users, &(Kind::Users as u64, name))
    }

    /// All users, by name.
    pub fn all_users(&self) -> KeyRange {
        KeyRange::children(&self.pack(Space::Users, &(Kind::Users as u64,)))
    }

    /// The user's name in a key.
    ///
    /// # Errors
    /// If the key is not the key of a user.
    pub fn read_user_key(&self, key: &[u8]) -> Result<Vec<u8>, DecodeError> {
        let mut rest = self.strip(Space::Users, key)?;
        let _: u64 = take(&mut rest, "kind of a user's row")?;
        let name: TupleBytes<'_> = take(&mut rest, "name of a user")?;
        Ok(name.into_owned())
    }
}
