//! Fields of hashes and members of sets: as rows, and packed in an inline value.
//!
//! A row's key is `(hash, name)`, or `(hash, nil, digest)` for a long name. Its value has the form
//! of [`StoredValue`](super::StoredValue). It is the field's value or, for a long name, the name's
//! length (4 bytes, big-endian), the name, and the value. A set's member has no value, so the row
//! of a short one is empty. A [`FieldValue`] with an expiry begins with it.
//!
//! An inline value has all entries in the order in which they were added: the name of each, and in a hash
//! also its value, both after their length. A length below 255 is one byte. Others are the byte 255
//! and 2 bytes, big-endian.

use bytes::{BufMut, Bytes, BytesMut};

use foundationdb_tuple::pack_into;

use super::{
    DecodeError, HashedKeys, Id, KeyRange, Layout, Member, Section, corrupt, take, with_byte,
};

/// The first byte of a length that has two more.
const LONG_LENGTH: u8 = 255;
/// Format byte of a field with an expiry.
const EXPIRING: u8 = 2;
/// Bytes of a long name's length in a row.
const NAME_LENGTH_BYTES: usize = 4;

/// A field with its value, or a member of a set with none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The field's or member's name.
    pub name: Bytes,
    /// The field's value; empty in a set.
    pub value: Bytes,
    /// When the field expires, in milliseconds since the Unix epoch. Members of sets do not.
    pub expire_at_ms: Option<i64>,
}

impl Entry {
    /// An entry that does not expire.
    pub fn new(name: Bytes, value: Bytes) -> Self {
        Self {
            name,
            value,
            expire_at_ms: None,
        }
    }
}

/// The value of a field's or member's row: a [`StoredValue`](super::StoredValue), or empty bytes,
/// and in a hash an expiry before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldValue {
    /// When the field expires, in milliseconds since the Unix epoch.
    pub expire_at_ms: Option<i64>,
    /// The rest of the row.
    pub stored: Bytes,
}

impl FieldValue {
    /// The row's value.
    pub fn encode(&self) -> Bytes {
        let Some(at_ms) = self.expire_at_ms else {
            return self.stored.clone();
        };
        let mut row = vec![EXPIRING];
        pack_into(&(at_ms,), &mut row);
        row.extend_from_slice(&self.stored);
        row.into()
    }

    /// Reads a row's value.
    ///
    /// # Errors
    /// If the expiry is invalid. The stored value is not checked.
    pub fn decode(row: &Bytes) -> Result<Self, DecodeError> {
        let Some((&EXPIRING, mut rest)) = row.split_first() else {
            return Ok(Self {
                expire_at_ms: None,
                stored: row.clone(),
            });
        };
        Ok(Self {
            expire_at_ms: Some(take(&mut rest, "expiry of a field")?),
            stored: row.slice_ref(rest),
        })
    }
}

/// The section of a type's entries, and whether they have values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldRow {
    /// Fields of a hash.
    Hash,
    /// Members of a set.
    Set,
}

impl FieldRow {
    /// The section of the rows.
    pub fn section(self) -> Section {
        match self {
            FieldRow::Hash => Section::Fields,
            FieldRow::Set => Section::SetMembers,
        }
    }

    /// What a row contains before it becomes a stored value. `None` is an empty row.
    pub fn content(self, name: &Member, value: &Bytes) -> Option<Bytes> {
        if name.is_long() {
            let full = name.bytes();
            let mut content = BytesMut::with_capacity(NAME_LENGTH_BYTES + full.len() + value.len());
            content.put_u32(u32::try_from(full.len()).unwrap_or(u32::MAX));
            content.extend_from_slice(full);
            content.extend_from_slice(value);
            return Some(content.freeze());
        }
        match self {
            FieldRow::Hash => Some(value.clone()),
            FieldRow::Set => None,
        }
    }

    /// Reads the result of [`Self::content`]. `name` is the name from the row's key.
    ///
    /// # Errors
    /// If the content is invalid.
    pub fn read_content(self, name: Option<Bytes>, content: Bytes) -> Result<Entry, DecodeError> {
        if let Some(name) = name {
            let value = content;
            return Ok(Entry::new(name, value));
        }
        let Some((length, _)) = content.split_first_chunk::<NAME_LENGTH_BYTES>() else {
            return corrupt("row of a long name");
        };
        let name_bytes = u32::from_be_bytes(*length) as usize;
        let end = NAME_LENGTH_BYTES.saturating_add(name_bytes);
        if content.len() < end {
            return corrupt("row of a long name");
        }
        Ok(Entry::new(
            content.slice(NAME_LENGTH_BYTES..end),
            content.slice(end..),
        ))
    }

    /// The inline value of these entries. `None` if it would exceed `bytes_max`, or if one of them expires.
    pub fn encode_inline(self, entries: &[Entry], bytes_max: usize) -> Option<Bytes> {
        let mut inline = BytesMut::with_capacity(bytes_max.min(64 * entries.len()));
        for entry in entries {
            if entry.expire_at_ms.is_some() {
                return None;
            }
            put_part(&mut inline, &entry.name)?;
            if self == FieldRow::Hash {
                put_part(&mut inline, &entry.value)?;
            }
            if inline.len() > bytes_max {
                return None;
            }
        }
        Some(inline.freeze())
    }

    /// Reads an inline value.
    ///
    /// # Errors
    /// If it is not one.
    pub fn decode_inline(self, inline: &Bytes) -> Result<Vec<Entry>, DecodeError> {
        let mut parts = Parts(inline);
        let mut entries = Vec::new();
        while let Some((name, value)) = parts.next(self)? {
            entries.push(Entry::new(inline.slice_ref(name), inline.slice_ref(value)));
        }
        Ok(entries)
    }

    /// The value of an entry in an inline value. `None` if there is no entry with that name.
    ///
    /// # Errors
    /// If it is not an inline value, up to that entry.
    pub fn find_inline(self, inline: &Bytes, wanted: &[u8]) -> Result<Option<Bytes>, DecodeError> {
        let mut parts = Parts(inline);
        while let Some((name, value)) = parts.next(self)? {
            if name == wanted {
                return Ok(Some(inline.slice_ref(value)));
            }
        }
        Ok(None)
    }

    /// Number of entries in an inline value.
    ///
    /// # Errors
    /// If it is not one.
    pub fn count_inline(self, inline: &Bytes) -> Result<i64, DecodeError> {
        let mut parts = Parts(inline);
        let mut count = 0;
        while parts.next(self)?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}

/// The rest of an inline value.
struct Parts<'b>(&'b [u8]);

/// The name and the value of an entry in it.
type NameAndValue<'b> = (&'b [u8], &'b [u8]);

impl<'b> Parts<'b> {
    /// The next entry's name and value; `None` after the last.
    fn next(&mut self, row: FieldRow) -> Result<Option<NameAndValue<'b>>, DecodeError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let name = self.take()?;
        let value = match row {
            FieldRow::Hash => self.take()?,
            FieldRow::Set => &[],
        };
        Ok(Some((name, value)))
    }

    fn take(&mut self) -> Result<&'b [u8], DecodeError> {
        let (length, rest) = match self.0 {
            [LONG_LENGTH, high, low, rest @ ..] => {
                (usize::from(u16::from_be_bytes([*high, *low])), rest)
            }
            [LONG_LENGTH, ..] | [] => return corrupt("inline value"),
            [length, rest @ ..] => (usize::from(*length), rest),
        };
        let Some((part, rest)) = rest.split_at_checked(length) else {
            return corrupt("inline value");
        };
        self.0 = rest;
        Ok(part)
    }
}

fn put_part(inline: &mut BytesMut, part: &Bytes) -> Option<()> {
    match u8::try_from(part.len()) {
        Ok(length) if length < LONG_LENGTH => inline.put_u8(length),
        _ => {
            inline.put_u8(LONG_LENGTH);
            inline.put_u16(u16::try_from(part.len()).ok()?);
        }
    }
    inline.extend_from_slice(part);
    Some(())
}

impl Layout {
    /// Key of the row of a field or member.
    pub fn field_key(&self, data: Id, row: FieldRow, name: &Member) -> Vec<u8> {
        self.hashed_key(data, row.section(), name)
    }

    /// The rows of fields or members from a hash onwards.
    pub fn fields_from(&self, data: Id, row: FieldRow, hash: u64) -> KeyRange {
        self.hashed_from(data, row.section(), hash)
    }

    /// The keys of fields or members.
    pub fn field_keys(&self, data: Id, row: FieldRow) -> HashedKeys {
        self.hashed_keys(data, row.section())
    }

    /// Key of the row of [`Section::FieldExpiries`] for the field whose row has the key `field_key`.
    ///
    /// # Errors
    /// If that is not the key of a field.
    pub fn field_expiry_key(
        &self,
        data: Id,
        at_ms: i64,
        field_key: &[u8],
    ) -> Result<Vec<u8>, DecodeError> {
        let fields = self.section_prefix(data, Section::Fields);
        let Some(field) = field_key.strip_prefix(fields.as_slice()) else {
            return corrupt("key of a field");
        };
        let mut key = self.section_prefix(data, Section::FieldExpiries);
        pack_into(&(at_ms,), &mut key);
        key.extend_from_slice(field);
        Ok(key)
    }

    /// The fields that have expired by `now_ms`, and at that time.
    pub fn field_expiries_by(&self, data: Id, now_ms: i64) -> KeyRange {
        let all = self.section_prefix(data, Section::FieldExpiries);
        let mut end = all.clone();
        pack_into(&(now_ms.saturating_add(1),), &mut end);
        KeyRange {
            begin: with_byte(&all, 0x00),
            end,
        }
    }

    /// Reads a key of [`Section::FieldExpiries`]: the time, and the key of the field's row.
    ///
    /// # Errors
    /// If the key is not one.
    pub fn read_field_expiry_key(
        &self,
        data: Id,
        key: &[u8],
    ) -> Result<(i64, Vec<u8>), DecodeError> {
        let expiries = self.section_prefix(data, Section::FieldExpiries);
        let Some(mut rest) = key.strip_prefix(expiries.as_slice()) else {
            return corrupt("key of a field's expiry");
        };
        let at_ms = take(&mut rest, "expiry of a field")?;
        let mut field_key = self.section_prefix(data, Section::Fields);
        field_key.extend_from_slice(rest);
        Ok((at_ms, field_key))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(bytes_max: usize) -> impl Strategy<Value = Bytes> {
        proptest::collection::vec(any::<u8>(), 0..bytes_max).prop_map(Bytes::from)
    }

    proptest! {
        #[test]
        fn an_inline_value_is_read_as_it_was_written(
            parts in proptest::collection::vec((bytes(400), bytes(400)), 0..20),
        ) {
            for row in [FieldRow::Hash, FieldRow::Set] {
                let entries: Vec<Entry> = parts
                    .iter()
                    .map(|(name, value)| {
                        let value = match row {
                            FieldRow::Hash => value.clone(),
                            FieldRow::Set => Bytes::new(),
                        };
                        Entry::new(name.clone(), value)
                    })
                    .collect();
                let inline = row.encode_inline(&entries, usize::MAX).unwrap();
                prop_assert_eq!(row.decode_inline(&inline).unwrap(), entries);
                prop_assert_eq!(row.count_inline(&inline).unwrap(), parts.len() as i64);
                let decoded = row.decode_inline(&inline).unwrap();
                for entry in &decoded {
                    let first = decoded.iter().find(|one| one.name == entry.name).unwrap();
                    let found = row.find_inline(&inline, &entry.name).unwrap();
                    prop_assert_eq!(found.as_ref(), Some(&first.value));
                }
                prop_assert_eq!(row.find_inline(&inline, &[0; 500]).unwrap(), None);
            }
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(inline in bytes(64)) {
            for row in [FieldRow::Hash, FieldRow::Set] {
                let decoded = row.decode_inline(&inline).map(|entries| entries.len() as i64);
                prop_assert_eq!(decoded.ok(), row.count_inline(&inline).ok());
            }
        }

        #[test]
        fn the_row_of_a_long_name_holds_name_and_value(
            name in proptest::collection::vec(any::<u8>(), 901..1_000),
            value in bytes(20),
        ) {
            let name = Bytes::from(name);
            let member = Member::new(&name);
            let content = FieldRow::Hash.content(&member, &value).unwrap();
            let read = FieldRow::Hash.read_content(None, content).unwrap();
            prop_assert_eq!(read, Entry::new(name, value));
        }
    }

    proptest! {
        #[test]
        fn a_row_with_an_expiry_is_read_as_it_was_written(
            at_ms in proptest::option::of(any::<i64>()),
            value in bytes(40),
        ) {
            let stored = crate::StoredValue::encode_plain(&value).into();
            let row = FieldValue { expire_at_ms: at_ms, stored };
            prop_assert_eq!(FieldValue::decode(&row.encode()).unwrap(), row);
        }

        #[test]
        fn rows_by_expiry_name_their_fields_and_are_in_the_order_of_time(
            name in proptest::collection::vec(any::<u8>(), 0..1_000),
            times in (0_i64..1 << 46, 0_i64..1 << 46),
        ) {
            let (layout, data) = (Layout::new("test"), Id { instance: 1, sequence: 2 });
            let field = layout.field_key(data, FieldRow::Hash, &Member::new(&name.into()));
            let key = |at_ms| layout.field_expiry_key(data, at_ms, &field).unwrap();
            let [first, second] = [times.0, times.1].map(key);
            prop_assert_eq!(first.cmp(&second), times.0.cmp(&times.1));
            let read = layout.read_field_expiry_key(data, &first).unwrap();
            prop_assert_eq!(read, (times.0, field));
            let range = layout.field_expiries_by(data, times.1);
            let is_due = range.begin <= first && first < range.end;
            prop_assert_eq!(is_due, times.0 <= times.1);
        }
    }

    #[test]
    fn an_entry_that_expires_needs_a_row() {
        let mut entry = Entry::new(Bytes::from_static(b"name"), Bytes::from_static(b"value"));
        entry.expire_at_ms = Some(1);
        assert_eq!(FieldRow::Hash.encode_inline(&[entry], usize::MAX), None);
    }

    #[test]
    fn an_inline_value_has_no_more_bytes_than_allowed() {
        let entry = Entry::new(Bytes::from_static(b"name"), Bytes::from_static(b"value"));
        let row = FieldRow::Hash;
        let entries = [entry];
        assert_eq!(row.encode_inline(&entries, 11).unwrap().len(), 11);
        assert_eq!(row.encode_inline(&entries, 10), None);
    }
}
