//! Rows with which servers of older builds of 0.x popped for each other. This version no longer
//! does so (docs/understand/decisions/053-forwarding.md). It reads the rows to return the elements
//! of grants to their queues. The encoders are for tests of that.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use foundationdb_tuple::pack_into;

use super::{DecodeError, Id, KeyName, KeyRange, Layout, Space, ValueType, corrupt, take, take_id};
use quoin_base::limits::VALUE_CHUNK_BYTES_MAX;

/// Format byte of requests and grants.
const FORMAT: u8 = 1;

/// The second tuple element of the space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    /// `(10, 0, data id…, at_ms, id…)`: a server asks for elements.
    Requests = 0,
    /// `(10, 1, data id…, id…)`: elements are a server's.
    Grants = 1,
    /// `(10, 2, data id…, id…, number)`: those elements.
    Elements = 2,
}

/// A server asks the others to pop for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PopRequest {
    /// Names the request; its instance is the server.
    pub id: Id,
    /// When it was made, in milliseconds since the Unix epoch by that server's clock.
    pub at_ms: i64,
    /// Whether from the end of the queue with the last or highest elements.
    pub from_end: bool,
    /// What its commands pop, one after another.
    pub runs: Vec<PopRun>,
}

/// Commands in a row that pop equally many elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PopRun {
    /// Maximum number of elements that each of them pops.
    pub count: usize,
    /// How many commands.
    pub commands: usize,
}

/// Popped elements that the requesting server has not fetched yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The queue's namespace.
    pub namespace: Id,
    /// The queue's name.
    pub name: KeyName,
    /// Its full name, if its keys hold only the digest.
    pub long_name: Option<Bytes>,
    /// The queue's type.
    pub value_type: ValueType,
    /// The end that they were taken from.
    pub from_end: bool,
    /// Whether there were no more elements.
    pub is_exhausted: bool,
    /// When they return to their queue, in milliseconds since the Unix epoch.
    pub expires_at_ms: i64,
}

/// One element of a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoppedElement {
    /// Of a list or priority queue: the element's place, which is the part of its key after the
    /// section's prefix. Of a sorted set: the member.
    pub name: Bytes,
    /// The value, or the score (8 bytes, big-endian).
    pub value: Bytes,
}

impl PopRequest {
    /// The row's value: format byte, then the tuple (from_end, count, commands, …).
    pub fn encode(&self) -> Vec<u8> {
        let mut value = vec![FORMAT];
        pack_into(&(u64::from(self.from_end),), &mut value);
        for run in &self.runs {
            pack_into(&(run.count as u64, run.commands as u64), &mut value);
        }
        value
    }
}

impl Grant {
    /// The row's value: format byte, then the tuple (namespace…, hash, name…, type, from_end,
    /// is_exhausted, expires_at_ms, full name or nil).
    pub fn encode(&self) -> Vec<u8> {
        let mut value = vec![FORMAT];
        let Id { instance, sequence } = self.namespace;
        pack_into(&(instance, sequence, self.name.hash()), &mut value);
        self.name.pack_into(&mut value);
        pack_into(
            &(
                self.value_type as u64,
                u64::from(self.from_end),
                u64::from(self.is_exhausted),
                self.expires_at_ms,
                self.long_name.as_deref(),
            ),
            &mut value,
        );
        value
    }

    /// Reads [`Grant::encode`].
    ///
    /// # Errors
    /// If it is not one, or is of a newer format.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let Some((&FORMAT, mut rest)) = value.split_first() else {
            return corrupt("format of a grant");
        };
        let namespace = take_id(&mut rest, "namespace of a grant")?;
        let hash = take(&mut rest, "key hash of a grant")?;
        let name = KeyName::take(hash, &mut rest)?;
        let code: u64 = take(&mut rest, "type of a grant")?;
        let Some(value_type) = ValueType::from_number(code) else {
            return corrupt("type of a grant");
        };
        let from_end: u64 = take(&mut rest, "end of a grant")?;
        let is_exhausted: u64 = take(&mut rest, "grant")?;
        let expires_at_ms = take(&mut rest, "time of a grant")?;
        let long_name: Option<foundationdb_tuple::Bytes<'_>> = take(&mut rest, "name of a grant")?;
        Ok(Self {
            namespace,
            name,
            long_name: long_name.map(|name| Bytes::from(name.into_owned())),
            value_type,
            from_end: from_end != 0,
            is_exhausted: is_exhausted != 0,
            expires_at_ms,
        })
    }
}

/// The elements of a grant, in the form of rows: each name and value after its length (4 bytes,
/// big-endian), as one text cut into pieces.
pub fn encode_elements(elements: &[PoppedElement]) -> Vec<Bytes> {
    let mut text = BytesMut::new();
    for part in elements.iter().flat_map(|one| [&one.name, &one.value]) {
        text.put_u32(u32::try_from(part.len()).unwrap_or(u32::MAX));
        text.put_slice(part);
    }
    let mut text = text.freeze();
    let mut pieces = Vec::new();
    while !text.is_empty() {
        pieces.push(text.split_to(text.len().min(VALUE_CHUNK_BYTES_MAX)));
    }
    pieces
}

/// Reads [`encode_elements`] from the joined pieces.
///
/// # Errors
/// If they are something else.
pub fn decode_elements(mut text: Bytes) -> Result<Vec<PoppedElement>, DecodeError> {
    let mut part = || {
        if text.len() < size_of::<u32>() {
            return corrupt("elements of a grant");
        }
        let length = usize::try_from(text.get_u32()).unwrap_or(usize::MAX);
        if text.len() < length {
            return corrupt("elements of a grant");
        }
        let part = text.split_to(length);
        Ok((part, text.is_empty()))
    };
    let mut elements = Vec::new();
    let mut is_done = false;
    while !is_done {
        let (name, _) = part()?;
        let (value, is_last) = part()?;
        elements.push(PoppedElement { name, value });
        is_done = is_last;
    }
    Ok(elements)
}

impl Layout {
    fn delegation<T: foundationdb_tuple::TuplePack>(&self, kind: Kind, tuple: &T) -> Vec<u8> {
        let mut key = self.pack(Space::Delegation, &(kind as u64,));
        pack_into(tuple, &mut key);
        key
    }

    /// Key of a request to pop from a queue's data.
    pub fn pop_request_key(&self, data: Id, request: &PopRequest) -> Vec<u8> {
        let PopRequest { id, at_ms, .. } = request;
        self.delegation(
            Kind::Requests,
            &(
                data.instance,
                data.sequence,
                *at_ms,
                id.instance,
                id.sequence,
            ),
        )
    }

    /// The requests for a queue's data, oldest first.
    pub fn pop_requests(&self, data: Id) -> KeyRange {
        KeyRange::children(&self.delegation(Kind::Requests, &(data.instance, data.sequence)))
    }

    /// All requests.
    pub fn all_pop_requests(&self) -> KeyRange {
        KeyRange::children(&self.delegation(Kind::Requests, &()))
    }

    /// Reads the row of a request. Also returns the data that it concerns.
    ///
    /// # Errors
    /// If it is not one.
    pub fn read_pop_request(
        &self,
        key: &[u8],
        value: &[u8],
    ) -> Result<(Id, PopRequest), DecodeError> {
        let mut rest = self.strip_delegation(Kind::Requests, key)?;
        let data = take_id(&mut rest, "data id of a request")?;
        let at_ms = take(&mut rest, "time of a request")?;
        let id = take_id(&mut rest, "request")?;
        let Some((&FORMAT, mut rest)) = value.split_first() else {
            return corrupt("format of a request");
        };
        let from_end: u64 = take(&mut rest, "end of a request")?;
        let mut runs = Vec::new();
        while !rest.is_empty() {
            let [count, commands] = [
                take::<u64>(&mut rest, "count of a request")?,
                take(&mut rest, "request")?,
            ]
            .map(|number| usize::try_from(number).unwrap_or(usize::MAX));
            runs.push(PopRun { count, commands });
        }
        let request = PopRequest {
            id,
            at_ms,
            from_end: from_end != 0,
            runs,
        };
        Ok((data, request))
    }

    /// Key of the grant for a request.
    pub fn grant_key(&self, data: Id, id: Id) -> Vec<u8> {
        let ids = (data.instance, data.sequence, id.instance, id.sequence);
        self.delegation(Kind::Grants, &ids)
    }

    /// The grants on what was in a queue's data.
    pub fn grants(&self, data: Id) -> KeyRange {
        KeyRange::children(&self.delegation(Kind::Grants, &(data.instance, data.sequence)))
    }

    /// All grants.
    pub fn all_grants(&self) -> KeyRange {
        KeyRange::children(&self.delegation(Kind::Grants, &()))
    }

    /// Reads the key of a grant: the data and the request.
    ///
    /// # Errors
    /// If it is not one.
    pub fn read_grant_key(&self, key: &[u8]) -> Result<(Id, Id), DecodeError> {
        let mut rest = self.strip_delegation(Kind::Grants, key)?;
        let data = take_id(&mut rest, "data id of a grant")?;
        Ok((data, take_id(&mut rest, "grant")?))
    }

    /// Key of a piece of a grant's elements.
    pub fn grant_piece_key(&self, data: Id, id: Id, number: u64) -> Vec<u8> {
        let ids = (
            data.instance,
            data.sequence,
            id.instance,
            id.sequence,
            number,
        );
        self.delegation(Kind::Elements, &ids)
    }

    /// A grant's elements.
    pub fn grant_pieces(&self, data: Id, id: Id) -> KeyRange {
        let ids = (data.instance, data.sequence, id.instance, id.sequence);
        KeyRange::children(&self.delegation(Kind::Elements, &ids))
    }

    /// All pieces of all grants' elements.
    pub fn all_grant_pieces(&self) -> KeyRange {
        KeyRange::children(&self.delegation(Kind::Elements, &()))
    }

    /// The grant that a piece belongs to: the data and the request.
    ///
    /// # Errors
    /// If the key is not the key of a piece.
    pub fn read_grant_piece_key(&self, key: &[u8]) -> Result<(Id, Id), DecodeError> {
        let mut rest = self.strip_delegation(Kind::Elements, key)?;
        let data = take_id(&mut rest, "data id of a grant")?;
        Ok((data, take_id(&mut rest, "grant")?))
    }

    fn strip_delegation<'k>(&self, kind: Kind, key: &'k [u8]) -> Result<&'k [u8], DecodeError> {
        let mut rest = self.strip(Space::Delegation, key)?;
        let found: u64 = take(&mut rest, "kind of a row of delegation")?;
        if found == kind as u64 {
            Ok(rest)
        } else {
            corrupt("row of delegation of another kind")
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn grant(name: &'static [u8], is_long: bool) -> Grant {
        Grant {
            namespace: Id {
                instance: 0,
                sequence: 3,
            },
            name: KeyName::new(&Bytes::from_static(name)),
            long_name: is_long.then(|| Bytes::from_static(name)),
            value_type: ValueType::SortedSet,
            from_end: true,
            is_exhausted: false,
            expires_at_ms: 1_700_000_000_000,
        }
    }

    #[test]
    fn grants_come_out_as_they_went_in() {
        for grant in [grant(b"jobs\0", false), grant(&[7; 2000], true)] {
            assert_eq!(Grant::decode(&grant.encode()).unwrap(), grant);
        }
        assert!(Grant::decode(b"\x02").is_err());
    }

    #[test]
    fn requests_of_a_queue_are_in_order_of_time() {
        let layout = Layout::new("quoin");
        let data = Id {
            instance: 1,
            sequence: 300,
        };
        let mut keys = Vec::new();
        for (at_ms, instance) in [(5, 9), (6, 1), (300, 0)] {
            let request = PopRequest {
                id: Id {
                    instance,
                    sequence: 2,
                },
                at_ms,
                from_end: instance == 1,
                runs: [(1, 4_000), (70_000, 1)]
                    .map(|(count, commands)| PopRun { count, commands })
                    .to_vec(),
            };
            let key = layout.pop_request_key(data, &request);
            let range = layout.pop_requests(data);
            assert!(range.begin < key && key < range.end);
            let read = layout.read_pop_request(&key, &request.encode()).unwrap();
            assert_eq!(read, (data, request));
            keys.push(key);
        }
        assert!(keys.is_sorted());
    }

    #[test]
    fn a_grant_is_among_those_of_its_data_and_its_elements_are_not() {
        let layout = Layout::new("quoin");
        let [data, id] = [(1, 2), (3, 4)].map(|(instance, sequence)| Id { instance, sequence });
        let key = layout.grant_key(data, id);
        let range = layout.grants(data);
        assert!(range.begin < key && key < range.end);
        assert_eq!(layout.read_grant_key(&key).unwrap(), (data, id));
        let piece = layout.grant_piece_key(data, id, 0);
        let all = layout.all_grants();
        assert!(piece >= all.end);
        let elements = layout.grant_pieces(data, id);
        assert!(elements.begin < piece && piece < elements.end);
    }

    proptest! {
        #[test]
        fn elements_come_out_as_they_went_in(
            parts in proptest::collection::vec((any::<Vec<u8>>(), any::<Vec<u8>>()), 1..20),
            padding in 0_usize..200_000,
        ) {
            let mut elements: Vec<PoppedElement> = parts
                .into_iter()
                .map(|(name, value)| PoppedElement { name: name.into(), value: value.into() })
                .collect();
            elements.push(PoppedElement { name: Bytes::new(), value: vec![1; padding].into() });
            let pieces = encode_elements(&elements);
            prop_assert!(pieces.iter().all(|piece| piece.len() <= VALUE_CHUNK_BYTES_MAX));
            let text: Vec<u8> = pieces.concat();
            prop_assert_eq!(decode_elements(text.into()).unwrap(), elements);
        }

        #[test]
        fn any_bytes_are_elements_or_refused(text in any::<Vec<u8>>()) {
            if let Ok(elements) = decode_elements(text.clone().into()) {
                prop_assert_eq!(encode_elements(&elements).concat(), text);
            }
        }
    }
}
