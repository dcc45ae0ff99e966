//! RESTORE reads or refuses anything that a client sends as a payload, within bounds. If it reads a
//! string or a list, DUMP writes a payload that is read as the same value.

use bytes::Bytes;
use quoin_rdb::{
    Chunks, DumpError, HashField, HashFields, ListElements, ListWriter, SetMembers,
    SortedSetMembers, open, read_string, reads_string, string_payload,
};

/// Maximum number of elements to check in one input, because a few bytes may expand to many.
const ELEMENTS_MAX: usize = 100_000;
/// Maximum bytes of elements to check, for the same reason.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Panics if the decoder misbehaves on this data.
pub(crate) fn run(data: &[u8]) {
    // As it is, which its checksum hardly ever allows, and with a correct footer.
    let _ = open(&Bytes::copy_from_slice(data));
    match open(&Bytes::from(sealed(data))) {
        Ok(payload) => {
            if payload.own_type().is_some() {
                own(Chunks::new(payload));
            } else if reads_string(payload.rdb_type()) {
                string(read_string(payload));
            } else if let Ok(elements) = ListElements::new(payload.clone()) {
                list(elements);
            } else if let Ok(members) = SortedSetMembers::new(payload.clone()) {
                sorted_set(members);
            } else if let Ok(fields) = HashFields::new(payload.clone()) {
                let pair = |field: HashField| field.name.len() + field.value.len();
                within_bounds(fields.map_while(Result::ok).map(pair));
            } else if let Ok(members) = SetMembers::new(payload) {
                within_bounds(members.map_while(Result::ok).map(|member| member.len()));
            }
        }
        Err(error) => assert!(error != DumpError::VersionOrChecksum, "the footer is good"),
    }
}

/// Reads to the end, or until there is too much.
fn within_bounds(mut sizes: impl Iterator<Item = usize>) {
    let mut bytes = 0;
    let is_much = |size: usize| {
        bytes += size;
        bytes > BYTES_MAX
    };
    let _ = sizes.by_ref().take(ELEMENTS_MAX).any(is_much);
}

fn sorted_set(members: SortedSetMembers) {
    let mut bytes = 0;
    for (member, score) in members.take(ELEMENTS_MAX).map_while(Result::ok) {
        assert!(!score.is_nan(), "a score is no number");
        bytes += member.len();
        if bytes > BYTES_MAX {
            return;
        }
    }
}

/// What is read from such a value is read the same after writing it again.
fn own(read: Result<Chunks, DumpError>) {
    let Ok(mut chunks) = read else { return };
    let Ok(count) = chunks.clone().count_left() else {
        return;
    };
    if count == 0 || count > ELEMENTS_MAX as u64 {
        return;
    }
    let Ok(Some(whole)) = chunks.next_chunk(usize::MAX, usize::MAX) else {
        panic!("what was read is not read again");
    };
    let again = open(&whole).and_then(Chunks::new);
    let again = again.map(|mut chunks| chunks.next_chunk(usize::MAX, usize::MAX));
    assert_eq!(
        again,
        Ok(Ok(Some(whole))),
        "a value does not survive a payload"
    );
}

fn string(read: Result<Bytes, DumpError>) {
    if let Ok(string) = read {
        let again = open(&string_payload(&string)).and_then(read_string);
        assert_eq!(
            again.ok(),
            Some(string),
            "a string does not survive a payload"
        );
    }
}

fn list(elements: impl Iterator<Item = Result<Bytes, DumpError>>) {
    let mut read = Vec::new();
    let mut bytes = 0;
    for element in elements.take(ELEMENTS_MAX) {
        let Ok(element) = element else { return };
        bytes += element.len();
        if bytes > BYTES_MAX {
            return;
        }
        read.push(element);
    }
    let mut writer = ListWriter::new();
    for element in &read {
        writer.push(element);
    }
    let again = open(&writer.finish()).and_then(ListElements::new);
    let again: Result<Vec<Bytes>, DumpError> = again.and_then(Iterator::collect);
    assert_eq!(again.ok(), Some(read), "a list does not survive a payload");
}

/// The value with a version and its checksum, bit by bit.
fn sealed(value: &[u8]) -> Vec<u8> {
    let mut payload = value.to_vec();
    payload.extend([10, 0]);
    let mut sum = 0_u64;
    for byte in &payload {
        sum ^= u64::from(*byte);
        for _ in 0..8 {
            let has_one = sum & 1 == 1;
            sum >>= 1;
            if has_one {
                sum ^= 0x95ac_9329_ac4b_c9b5;
            }
        }
    }
    payload.extend(sum.to_le_bytes());
    payload
}
