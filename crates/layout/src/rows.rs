//! Keys that do not depend on a value's type: of databases, metadata, expiry, trash, messages.

use foundationdb_tuple::{TuplePack, pack_into};

use super::{
    DecodeError, Id, KeyName, KeyRange, Section, Space, TrashKind, corrupt, take, take_id,
    with_byte,
};

/// Builds and reads keys below one root prefix.
#[derive(Debug, Clone)]
pub struct Layout {
    pub(super) root: Vec<u8>,
}

impl Layout {
    /// A layout below the tuple `(root_prefix)`, or at the top if the prefix is empty.
    pub fn new(root_prefix: &str) -> Self {
        let root = if root_prefix.is_empty() {
            Vec::new()
        } else {
            foundationdb_tuple::pack(&(root_prefix,))
        };
        Self { root }
    }

    pub(super) fn pack<T: TuplePack>(&self, space: Space, tuple: &T) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.root.len() + 48);
        key.extend_from_slice(&self.root);
        pack_into(&(space as u64,), &mut key);
        pack_into(tuple, &mut key);
        key
    }

    /// What follows the space's element in `key`.
    pub(super) fn strip<'k>(&self, space: Space, key: &'k [u8]) -> Result<&'k [u8], DecodeError> {
        let Some(mut rest) = key.strip_prefix(self.root.as_slice()) else {
            return corrupt("key outside the root prefix");
        };
        let found: u64 = take(&mut rest, "space")?;
        if found == space as u64 {
            Ok(rest)
        } else {
            corrupt("key of another space")
        }
    }

    /// Key of the layout version.
    pub fn version_key(&self) -> Vec<u8> {
        self.pack(Space::Version, &())
    }

    /// Key of the store's id, if the store itself has none.
    pub fn store_id_key(&self) -> Vec<u8> {
        self.pack(Space::Version, &(0_u64,))
    }

    /// Key of the secret by which servers recognize each other if several can share the store.
    pub fn link_secret_key(&self) -> Vec<u8> {
        self.pack(Space::Version, &(1_u64,))
    }

    /// Key of the counter for instance numbers.
    pub fn instances_key(&self) -> Vec<u8> {
        self.pack(Space::Instances, &())
    }

    /// Key of the row that says which namespace a database shows.
    pub fn database_key(&self, database: u32) -> Vec<u8> {
        self.pack(Space::Databases, &(database,))
    }

    /// Key that records the last batch committed through one slot of one server.
    pub fn operation_key(&self, instance: u64, slot: u64) -> Vec<u8> {
        self.pack(Space::Operations, &(instance, slot))
    }

    /// Key of a key's metadata.
    pub fn meta_key(&self, namespace: Id, name: &KeyName) -> Vec<u8> {
        let mut key = self.pack(
            Space::Keys,
            &(namespace.instance, namespace.sequence, name.hash()),
        );
        name.pack_into(&mut key);
        key
    }

    /// Key of the length counter next to a metadata key.
    pub fn length_key(&self, meta_key: &[u8]) -> Vec<u8> {
        let mut key = Vec::with_capacity(meta_key.len() + 1);
        key.extend_from_slice(meta_key);
        pack_into(&(0_u64,), &mut key);
        key
    }

    /// All metadata of a namespace from a hash onwards: the range that SCAN reads.
    pub fn keys_from(&self, namespace: Id, hash: u64) -> KeyRange {
        let all = self.pack(Space::Keys, &(namespace.instance, namespace.sequence));
        let mut begin = all.clone();
        pack_into(&(hash,), &mut begin);
        KeyRange {
            begin,
            end: with_byte(&all, 0xff),
        }
    }

    /// Reads a key of [`Layout::keys_from`]: metadata or the length next to it.
    ///
    /// # Errors
    /// If the key is not of this space.
    pub fn read_keys_row(&self, key: &[u8]) -> Result<KeysRow, DecodeError> {
        let mut rest = self.strip(Space::Keys, key)?;
        let _: u64 = take(&mut rest, "namespace")?;
        let _: u64 = take(&mut rest, "namespace")?;
        let hash: u64 = take(&mut rest, "key hash")?;
        let name = KeyName::take(hash, &mut rest)?;
        if rest.is_empty() {
            Ok(KeysRow::Meta(name))
        } else {
            Ok(KeysRow::Length(name))
        }
    }

    /// The keys, and the data, of all ids that a server start allocates.
    pub fn rows_of_instance(&self, instance: u64) -> [KeyRange; 2] {
        [Space::Keys, Space::Data].map(|space| {
            let begin = self.pack(space, &(instance,));
            KeyRange {
                end: with_byte(&begin, 0xff),
                begin,
            }
        })
    }

    /// Prefix of everything that belongs to a data id.
    pub fn data_prefix(&self, data: Id) -> Vec<u8> {
        self.pack(Space::Data, &(data.instance, data.sequence))
    }

    /// Prefix of one section of a data id.
    pub fn section_prefix(&self, data: Id, section: Section) -> Vec<u8> {
        self.pack(Space::Data, &(data.instance, data.sequence, section as u64))
    }

    /// Prefix of the chunks of one split value.
    pub fn chunks_prefix(&self, data: Id, chunks: Id) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::Chunks);
        pack_into(&(chunks.instance, chunks.sequence), &mut key);
        key
    }

    /// Key of one chunk of a split value.
    pub fn chunk_key(&self, data: Id, chunks: Id, number: u64) -> Vec<u8> {
        let mut key = self.chunks_prefix(data, chunks);
        pack_into(&(number,), &mut key);
        key
    }

    /// Key in the expiry index.
    pub fn expiry_key(&self, expire_at_ms: i64, namespace: Id, name: &KeyName) -> Vec<u8> {
        let mut key = self.pack(
            Space::Expiry,
            &(
                expire_at_ms,
                namespace.instance,
                namespace.sequence,
                name.hash(),
            ),
        );
        name.pack_into(&mut key);
        key
    }

    /// The expiry index up to and including `now_ms`.
    pub fn expired_by(&self, now_ms: i64) -> KeyRange {
        let all = self.pack(Space::Expiry, &());
        let mut end = all.clone();
        pack_into(&(now_ms.saturating_add(1),), &mut end);
        KeyRange {
            begin: with_byte(&all, 0x00),
            end,
        }
    }

    /// Reads a key of the expiry index: time, namespace and key.
    ///
    /// # Errors
    /// If the key is not of this space.
    pub fn read_expiry_key(&self, key: &[u8]) -> Result<(i64, Id, KeyName), DecodeError> {
        let mut rest = self.strip(Space::Expiry, key)?;
        let expire_at_ms = take(&mut rest, "expiry time")?;
        let namespace = take_id(&mut rest, "namespace")?;
        let hash = take(&mut rest, "key hash")?;
        let name = KeyName::take(hash, &mut rest)?;
        Ok((expire_at_ms, namespace, name))
    }

    /// Key that marks an id as trash.
    pub fn trash_key(&self, kind: TrashKind, id: Id) -> Vec<u8> {
        self.pack(Space::Trash, &(kind as u64, id.instance, id.sequence))
    }

    /// All trash.
    pub fn trash(&self) -> KeyRange {
        KeyRange::children(&self.pack(Space::Trash, &()))
    }

    /// Reads a key of the trash.
    ///
    /// # Errors
    /// If the key is not of this space.
    pub fn read_trash_key(&self, key: &[u8]) -> Result<(TrashKind, Id), DecodeError> {
        let mut rest = self.strip(Space::Trash, key)?;
        let kind = TrashKind::from_number(take(&mut rest, "trash kind")?);
        let kind = kind.ok_or(DecodeError("trash kind"))?;
        Ok((kind, take_id(&mut rest, "trash id")?))
    }

    /// Key of the counter that changes with each transaction that publishes.
    pub fn bell_key(&self) -> Vec<u8> {
        self.pack(Space::Messages, &(0_u64,))
    }

    /// Prefix of the keys of published messages. The commit chooses the rest.
    pub fn messages_prefix(&self) -> Vec<u8> {
        let mut prefix = self.pack(Space::Messages, &(1_u64,));
        prefix.push(VERSIONSTAMP_CODE);
        prefix
    }

    /// All published messages.
    pub fn messages(&self) -> KeyRange {
        KeyRange::children(&self.pack(Space::Messages, &(1_u64,)))
    }

    /// Key that marks a server start to which other servers report changed keys.
    pub fn change_mark_key(&self, instance: u64) -> Vec<u8> {
        self.pack(Space::Messages, &(2_u64, instance))
    }

    /// All such marks.
    pub fn change_marks(&self) -> KeyRange {
        KeyRange::children(&self.pack(Space::Messages, &(2_u64,)))
    }

    /// Reads the key of such a mark: the server start.
    ///
    /// # Errors
    /// If the key is not of this space.
    pub fn read_change_mark_key(&self, key: &[u8]) -> Result<u64, DecodeError> {
        let mut rest = self.strip(Space::Messages, key)?;
        let _: u64 = take(&mut rest, "kind of row")?;
        take(&mut rest, "instance")
    }

    /// Key of the beat of a server start to which other servers report changed keys. It is a counter.
    pub fn change_mark_beat_key(&self, instance: u64) -> Vec<u8> {
        self.pack(Space::Messages, &(3_u64, instance))
    }

    /// Key of the row that says up to which row the messages have been cleared.
    pub fn messages_cleared_key(&self) -> Vec<u8> {
        self.pack(Space::Messages, &(4_u64,))
    }

    /// Reads the key of a published message: the part that the commit chose, and the row's number.
    ///
    /// # Errors
    /// If the key is not of this space.
    pub fn read_message_key(&self, key: &[u8]) -> Result<([u8; 10], u16), DecodeError> {
        let rest = key.strip_prefix(self.messages_prefix().as_slice());
        let split = rest.and_then(|rest| rest.split_first_chunk::<10>());
        match split {
            Some((stamp, &[high, low])) => Ok((*stamp, u16::from_be_bytes([high, low]))),
            _ => corrupt("key of a message"),
        }
    }
}

/// FoundationDB's type code of a versionstamp.
const VERSIONSTAMP_CODE: u8 = 0x33;

/// A row of [`Space::Keys`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeysRow {
    /// The row holds a key's metadata.
    Meta(KeyName),
    /// The row holds the length counter of the key before it.
    Length(KeyName),
}
