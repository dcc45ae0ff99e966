//! Reads any row of the store, for `quoin doctor`.

use super::{
    DecodeError, Id, KeyName, KeyRange, KeysRow, Layout, Section, Space, corrupt, take, take_id,
    with_byte,
};

/// The first byte that follows all keys of the tuple encoding.
const TUPLES_END: u8 = 0xff;

impl Layout {
    /// Everything under the root prefix.
    pub fn everything(&self) -> KeyRange {
        KeyRange {
            begin: self.root.clone(),
            end: with_byte(&self.root, TUPLES_END),
        }
    }

    /// The number of the space that a row belongs to.
    ///
    /// # Errors
    /// If there is no such number.
    pub fn read_space(&self, key: &[u8]) -> Result<u64, DecodeError> {
        match key.strip_prefix(self.root.as_slice()) {
            Some(mut rest) => take(&mut rest, "space"),
            None => corrupt("key outside the root prefix"),
        }
    }

    /// All rows of the space of that number.
    pub fn space(&self, number: u64) -> KeyRange {
        let mut prefix = self.root.clone();
        foundationdb_tuple::pack_into(&(number,), &mut prefix);
        KeyRange {
            end: with_byte(&prefix, TUPLES_END),
            begin: prefix,
        }
    }

    /// All rows of a space.
    pub fn rows_of(&self, space: Space) -> KeyRange {
        self.space(space as u64)
    }

    /// Reads a row of [`Space::Keys`] of any namespace.
    ///
    /// # Errors
    /// If the key is not of this space.
    pub fn read_namespaced_key(&self, key: &[u8]) -> Result<(Id, KeysRow), DecodeError> {
        let mut rest = self.strip(Space::Keys, key)?;
        let namespace = take_id(&mut rest, "namespace")?;
        let hash: u64 = take(&mut rest, "key hash")?;
        let name = KeyName::take(hash, &mut rest)?;
        let row = match rest {
            [] => KeysRow::Meta(name),
            _ => KeysRow::Length(name),
        };
        Ok((namespace, row))
    }

    /// The key after all keys of a namespace.
    pub fn end_of_namespace(&self, namespace: Id) -> Vec<u8> {
        self.keys_from(namespace, 0).end
    }

    /// The data id of a row of [`Space::Data`], and the number of its section.
    ///
    /// # Errors
    /// If the key is not of this space.
    pub fn read_data_key(&self, key: &[u8]) -> Result<(Id, u64), DecodeError> {
        let mut rest = self.strip(Space::Data, key)?;
        let data = take_id(&mut rest, "data id")?;
        Ok((data, take(&mut rest, "section")?))
    }

    /// The chunks id of a row of [`Section::Chunks`].
    ///
    /// # Errors
    /// If the key is not one.
    pub fn read_chunk_key(&self, data: Id, key: &[u8]) -> Result<Id, DecodeError> {
        let prefix = self.section_prefix(data, Section::Chunks);
        match key.strip_prefix(prefix.as_slice()) {
            Some(mut rest) => take_id(&mut rest, "chunks id"),
            None => corrupt("key of a chunk"),
        }
    }

    /// All rows of a section of a data id.
    pub fn section(&self, data: Id, section: Section) -> KeyRange {
        KeyRange::children(&self.section_prefix(data, section))
    }

    /// The instance of a row of [`Space::Operations`].
    ///
    /// # Errors
    /// If the key is not of this space.
    pub fn read_operation_key(&self, key: &[u8]) -> Result<u64, DecodeError> {
        take(&mut self.strip(Space::Operations, key)?, "instance")
    }

    /// Key of a row that exists only for measurements.
    pub fn scratch_key(&self, random: u64) -> Vec<u8> {
        self.pack(Space::Scratch, &(random,))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Timers;
    use super::*;
    use bytes::Bytes;

    const ID: Id = Id {
        instance: 1,
        sequence: 300,
    };

    #[test]
    fn numbers_name_their_spaces_and_sections() {
        for space in Space::ALL {
            assert_eq!(Space::from_number(*space as u64), Some(*space));
        }
        for section in Section::ALL {
            assert_eq!(Section::from_number(*section as u64), Some(*section));
        }
        assert_eq!(Space::from_number(62), None);
        assert_eq!(Section::from_number(62), None);
    }

    #[test]
    fn every_row_lies_in_its_space_and_no_other() {
        let layout = Layout::new("test");
        let name = KeyName::new(&Bytes::from_static(b"jobs"));
        let meta = layout.meta_key(ID, &name);
        let rows = [
            (Space::Version, layout.version_key()),
            (Space::Version, layout.store_id_key()),
            (Space::Version, layout.link_secret_key()),
            (Space::Keys, meta.clone()),
            (Space::Keys, layout.length_key(&meta)),
            (Space::Data, layout.chunk_key(ID, ID, 0)),
            (Space::Expiry, layout.expiry_key(7, ID, &name)),
            (Space::Operations, layout.operation_key(3, 1)),
            (Space::Instances, layout.instances_key()),
            (Space::Databases, layout.database_key(0)),
            (Space::Messages, layout.bell_key()),
            (
                Space::Timers,
                layout.timer_key(Timers::Queues, 7, ID, &name),
            ),
            (
                Space::HashTimers,
                layout.timer_key(Timers::Hashes, 7, ID, &name),
            ),
            (Space::Scripts, layout.script_flushes_key()),
            (Space::Scripts, layout.script_by_time_key(7, "ab")),
            (Space::Scripts, layout.library_piece_key("lib", 1)),
            (Space::Scripts, layout.libraries_version_key()),
            (Space::Users, layout.users_version_key()),
            (Space::Users, layout.user_key(b"alice")),
            (Space::Servers, layout.server_key(3)),
            (Space::Servers, layout.choice_key(b"mymaster")),
            (Space::Scratch, layout.scratch_key(u64::MAX)),
        ];
        for (space, key) in &rows {
            assert_eq!(layout.read_space(key).unwrap(), *space as u64);
            for other in Space::ALL {
                let range = layout.rows_of(*other);
                let is_inside = *key >= range.begin && *key < range.end;
                assert_eq!(is_inside, space == other, "{space:?} {other:?}");
            }
            let everything = layout.everything();
            assert!(*key >= everything.begin && *key < everything.end);
        }
    }

    #[test]
    fn keys_tell_what_they_are_of() {
        let layout = Layout::new("test");
        let name = KeyName::new(&Bytes::from_static(b"jobs"));
        let meta = layout.meta_key(ID, &name);
        let read = layout.read_namespaced_key(&meta).unwrap();
        assert_eq!(read, (ID, KeysRow::Meta(name.clone())));
        let read = layout.read_namespaced_key(&layout.length_key(&meta));
        assert_eq!(read.unwrap(), (ID, KeysRow::Length(name)));
        let chunk = layout.chunk_key(
            ID,
            Id {
                instance: 9,
                sequence: 8,
            },
            2,
        );
        assert_eq!(layout.read_data_key(&chunk).unwrap(), (ID, 3));
        let read = layout.read_chunk_key(ID, &chunk).unwrap();
        assert_eq!((read.instance, read.sequence), (9, 8));
        let task = layout.task_key(ID, b"a\0b");
        assert_eq!(layout.read_task_key(ID, &task).unwrap(), b"a\0b");
        let operation = layout.operation_key(700, 3);
        assert_eq!(layout.read_operation_key(&operation).unwrap(), 700);
    }
}
