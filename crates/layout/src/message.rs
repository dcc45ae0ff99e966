//! Published messages on their way to other servers. Those of one transaction are one text, cut
//! into rows.

use bytes::{Buf, BufMut, Bytes};

use super::{DecodeError, corrupt};
use quoin_base::limits::VALUE_CHUNK_BYTES_MAX;

const FORMAT: u8 = 0;
/// The format and the number of rows.
const HEADER_BYTES: usize = 3;

/// A message in its stored form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// How it finds its subscribers. 0: by channel and pattern. 1: by shard channel. 2: not a message of a
    /// client, its payload names changed keys ([`encode_names`]). 3: no message either, all keys changed.
    /// 4: its payload names keys that became ready for waiting clients, in the database that the channel numbers.
    /// 5: all keys of that database may be ready, or of all databases if the channel is empty.
    pub kind: u8,
    /// The channel.
    pub channel: Bytes,
    /// The message.
    pub payload: Bytes,
}

/// The values of the rows with the messages that a server start (`instance`) publishes in one
/// transaction.
pub fn encode_messages<'m>(
    instance: u64,
    messages: impl Iterator<Item = (u8, &'m [u8], &'m [u8])>,
) -> Vec<Bytes> {
    let mut text = Vec::new();
    text.put_u64(instance);
    for (kind, channel, payload) in messages {
        text.put_u8(kind);
        for part in [channel, payload] {
            // Arguments are at most half a gigabyte.
            text.put_u32(u32::try_from(part.len()).unwrap_or(u32::MAX));
            text.put_slice(part);
        }
    }
    let rows = text.chunks(VALUE_CHUNK_BYTES_MAX);
    let count = u16::try_from(rows.len()).unwrap_or(u16::MAX);
    rows.map(|piece| {
        let mut value = Vec::with_capacity(HEADER_BYTES + piece.len());
        value.put_u8(FORMAT);
        value.put_u16(count);
        value.put_slice(piece);
        value.into()
    })
    .collect()
}

/// Reads a row's value: how many rows belong together, and its piece of the text.
///
/// # Errors
/// If the format is unknown.
pub fn read_message_row(value: &[u8]) -> Result<(u16, &[u8]), DecodeError> {
    match value {
        [FORMAT, high, low, piece @ ..] => Ok((u16::from_be_bytes([*high, *low]), piece)),
        _ => corrupt("format of a message"),
    }
}

/// Reads the text that the rows form together: the server that published the messages, and the
/// messages.
///
/// # Errors
/// If it is not such a text.
pub fn decode_messages(mut text: Bytes) -> Result<(u64, Vec<StoredMessage>), DecodeError> {
    const SHORT: DecodeError = DecodeError("length of a message");
    let instance = text.try_get_u64().map_err(|_| SHORT)?;
    let mut messages = Vec::new();
    while text.has_remaining() {
        let kind = text.try_get_u8().map_err(|_| SHORT)?;
        let mut part = || {
            let length = text.try_get_u32().map_err(|_| SHORT)? as usize;
            if length > text.remaining() {
                return Err(SHORT);
            }
            Ok(text.split_to(length))
        };
        let (channel, payload) = (part()?, part()?);
        messages.push(StoredMessage {
            kind,
            channel,
            payload,
        });
    }
    Ok((instance, messages))
}

/// Names of keys as one payload.
pub fn encode_names<'n>(names: impl Iterator<Item = &'n Bytes>) -> Bytes {
    let mut payload = Vec::new();
    for name in names {
        // Names are at most half a gigabyte.
        payload.put_u32(u32::try_from(name.len()).unwrap_or(u32::MAX));
        payload.put_slice(name);
    }
    payload.into()
}

/// Reads the names of keys of a payload.
///
/// # Errors
/// If it is not such a payload.
pub fn decode_names(mut payload: Bytes) -> Result<Vec<Bytes>, DecodeError> {
    let mut names = Vec::new();
    while payload.has_remaining() {
        let length = payload.try_get_u32();
        let length = length.map_err(|_| DecodeError("length of a name"))? as usize;
        if length > payload.remaining() {
            return corrupt("length of a name");
        }
        names.push(payload.split_to(length));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn join(rows: &[Bytes]) -> Bytes {
        let mut text = Vec::new();
        for row in rows {
            let (count, piece) = read_message_row(row).unwrap();
            assert_eq!(usize::from(count), rows.len());
            text.extend_from_slice(piece);
        }
        text.into()
    }

    #[test]
    fn a_long_message_takes_several_rows() {
        let payload = vec![7; VALUE_CHUNK_BYTES_MAX * 2];
        let rows = encode_messages(9, std::iter::once((0, &b"c"[..], payload.as_slice())));
        assert_eq!(rows.len(), 3);
        let (instance, messages) = decode_messages(join(&rows)).unwrap();
        assert_eq!((instance, messages.len()), (9, 1));
        assert_eq!(messages[0].payload, payload);
    }

    #[test]
    fn a_text_that_ends_early_is_corrupt() {
        let rows = encode_messages(9, std::iter::once((0, &b"c"[..], &b"payload"[..])));
        let text = join(&rows);
        for length in (0..text.len()).filter(|length| *length != 8) {
            assert!(decode_messages(text.slice(..length)).is_err(), "{length}");
        }
    }

    #[test]
    fn names_that_end_early_are_corrupt() {
        let names = [Bytes::from("a"), Bytes::new(), Bytes::from("long")];
        let payload = encode_names(names.iter());
        assert_eq!(decode_names(payload.clone()).unwrap(), names);
        assert!(decode_names(payload.slice(..payload.len() - 1)).is_err());
        assert!(decode_names(payload.slice(..2)).is_err());
    }

    proptest! {
        #[test]
        fn messages_are_read_back(
            instance in any::<u64>(),
            messages in proptest::collection::vec((0..2_u8, any::<Vec<u8>>(), any::<Vec<u8>>()), 1..9),
        ) {
            let parts = messages.iter().map(|(kind, channel, payload)| {
                (*kind, channel.as_slice(), payload.as_slice())
            });
            let (found, read) = decode_messages(join(&encode_messages(instance, parts))).unwrap();
            prop_assert_eq!(found, instance);
            let read: Vec<_> = read
                .into_iter()
                .map(|one| (one.kind, one.channel.to_vec(), one.payload.to_vec()))
                .collect();
            prop_assert_eq!(read, messages);
        }
    }
}
