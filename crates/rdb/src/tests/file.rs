//! RDB files.

use bytes::Bytes;

use crate::LIBRARY;
use crate::file::*;
use crate::input::RdbError;
use crate::testing::{
    crc64, hashes, length, number_sets, old_lists, old_sets, sealed, sets, string, strings,
};

/// Bytes of a payload after the value.
const FOOTER_BYTES: usize = 10;
const VALUE_BYTES_MAX: usize = 1 << 20;

/// A file of a version with these items, and with the right checksum.
fn file(version: u16, items: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("REDIS{version:04}").into_bytes();
    bytes.extend(items.concat());
    bytes.push(OPCODE_END);
    if version >= VERSION_WITH_CHECKSUM {
        bytes.extend(crc64(&bytes).to_le_bytes());
    }
    bytes
}

/// The same of Valkey.
fn of_valkey(version: u16, items: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("VALKEY{version:03}").into_bytes();
    bytes.extend(items.concat());
    bytes.push(OPCODE_END);
    bytes.extend(crc64(&bytes).to_le_bytes());
    bytes
}

fn read(bytes: &[u8]) -> Result<Vec<RdbItem>, RdbError> {
    let mut reader = RdbReader::begin(bytes, VALUE_BYTES_MAX)?;
    let mut items = Vec::new();
    while let Some(item) = reader.next_item()? {
        items.push(item);
    }
    assert!(matches!(reader.next_item(), Ok(None)));
    Ok(items)
}

/// The bytes of a key in a file: type, name, value.
fn key(name: &[u8], rdb_type: u8, value: &[u8]) -> Vec<u8> {
    [&[rdb_type][..], &string(name), value].concat()
}

fn found(name: &'static [u8], value: RdbValue) -> RdbItem {
    RdbItem::Key(RdbKey {
        database: 0,
        name: Bytes::from_static(name),
        expire_at_ms: None,
        value,
    })
}

fn payload(rdb_type: u8, value: &[u8]) -> RdbValue {
    RdbValue::Payload(sealed(10, &[&[rdb_type], value].concat()).into())
}

#[test]
fn values_of_every_encoding_end_where_they_end() {
    let words: Vec<Vec<u8>> = (0..200_u32)
        .map(|number| number.to_string().into())
        .collect();
    let pairs: Vec<(Vec<u8>, Vec<u8>)> = words
        .iter()
        .map(|word| (word.clone(), [word.as_slice(), b" text"].concat()))
        .collect();
    let scores: Vec<(Vec<u8>, f64)> = words.iter().cloned().zip((0..200).map(f64::from)).collect();
    let numbers: Vec<i64> = (0..200).map(|number| number * 100_000).collect();
    let payloads = [
        strings(&b"a text that is repeated ".repeat(100)),
        old_lists(&words),
        old_sets(&scores),
        hashes(&pairs),
        sets(&words),
        number_sets(&numbers),
    ];
    let mut types = std::collections::BTreeSet::new();
    for (form, payload) in payloads.concat() {
        let value = &payload[1..payload.len() - FOOTER_BYTES];
        types.insert(payload[0]);
        let bytes = file(
            11,
            &[
                &key(b"k", payload[0], value),
                &key(b"end", 0, &string(b"x")),
            ],
        );
        let items = read(&bytes).unwrap_or_else(|error| panic!("{form}: {error}"));
        assert_eq!(items.len(), 2, "{form}");
        assert_eq!(
            items[0],
            found(b"k", self::payload(payload[0], value)),
            "{form}"
        );
    }
    assert!(types.len() >= 12, "{types:?}");
}

#[test]
fn streams_of_all_three_forms_end_where_they_end() {
    let id = [0_u8; 16];
    for (rdb_type, numbers, group_numbers, times) in [(15, 3, 2, 8), (19, 8, 3, 8), (21, 8, 3, 16)]
    {
        let group = [
            string(b"group"),
            length(5).repeat(group_numbers),
            length(1),
            id.to_vec(),
            vec![0; 8],
            length(3),
            length(1),
            string(b"consumer"),
            vec![0; times],
            length(1),
            id.to_vec(),
        ];
        let value = [
            length(1),
            string(&id),
            string(b"a listpack"),
            length(7).repeat(numbers),
            length(1),
            group.concat(),
        ]
        .concat();
        let bytes = file(
            11,
            &[&key(b"s", rdb_type, &value), &key(b"end", 0, &string(b"x"))],
        );
        let items = read(&bytes).unwrap();
        assert_eq!(
            items[0],
            found(b"s", payload(rdb_type, &value)),
            "{rdb_type}"
        );
        assert_eq!(items.len(), 2);
    }
}

#[test]
fn what_stands_between_keys_is_read() {
    let fact = [&[OPCODE_FACT][..], &string(b"redis-ver"), &string(b"7.0.0")].concat();
    let module_data = [
        &[OPCODE_MODULE_DATA][..],
        &[0x81],
        &[9; 8],
        &length(2),
        &length(1),
        &[1, 5, 3, 0, 0, 0, 0, 5],
        &string(b"part"),
        &[0],
    ]
    .concat();
    let module = [
        &[0x81][..],
        &[9; 8],
        &[2, 5, 4],
        &[0; 8],
        &[5],
        &string(b"part"),
        &[0],
    ]
    .concat();
    let expiring = [
        &[OPCODE_SELECT, 3, OPCODE_SIZES, 2, 1, OPCODE_EXPIRE_AT_MS][..],
        &5_000_i64.to_le_bytes(),
        &[OPCODE_IDLE, 9, OPCODE_FREQUENCY, 200],
        &key(b"a", 0, &[0xc0, 5]),
        &[OPCODE_EXPIRE_AT_S],
        &7_i32.to_le_bytes(),
        &key(b"b", 0, &string(b"x")),
        &key(b"c", 0, &string(b"x")),
    ]
    .concat();
    let library = [&[LIBRARY][..], &string(b"#!lua name=l")].concat();
    let items = [
        &fact[..],
        &library,
        &module_data,
        &key(b"m", 7, &module),
        &expiring,
    ];
    let items = read(&file(10, &items)).unwrap();
    let expiring = |name: &'static [u8], expire_at_ms, value: &[u8]| {
        RdbItem::Key(RdbKey {
            database: 3,
            name: Bytes::from_static(name),
            expire_at_ms,
            value: payload(0, value),
        })
    };
    let expected = [
        RdbItem::Library(Bytes::from("#!lua name=l")),
        RdbItem::ModuleData,
        found(b"m", RdbValue::Module),
        expiring(b"a", Some(5_000), &[0xc0, 5]),
        expiring(b"b", Some(7_000), &string(b"x")),
        expiring(b"c", None, &string(b"x")),
    ];
    assert_eq!(items, expected);
}

#[test]
fn every_version_that_is_known_is_read_and_no_later_one() {
    let item = key(b"k", 0, &string(b"x"));
    for version in 1..=13 {
        assert_eq!(
            read(&file(version, &[&item])).unwrap().len(),
            1,
            "{version}"
        );
    }
    let refused = read(&file(14, &[&item])).unwrap_err();
    assert!(refused.to_string().contains("version 14"), "{refused}");
    assert_eq!(read(&of_valkey(80, &[&item])).unwrap().len(), 1);
    let refused = read(&of_valkey(81, &[&item])).unwrap_err();
    assert!(refused.to_string().contains("version 81"), "{refused}");
    for wrong in [&b"REDIS0000"[..], b"REDISxxxx", b"redis0010", b"", b"RED"] {
        assert!(matches!(read(wrong), Err(RdbError::NoRdb)), "{wrong:?}");
    }
}

#[test]
fn values_of_later_encodings_end_where_they_end() {
    let fields = [length(7), string(b"f"), string(b"v")].concat();
    let stream = [
        &length(0)[..],
        &length(0).repeat(8),
        &length(0),
        &length(100).repeat(2),
        &length(1),
        &string(b"producer"),
        &length(1),
        &string(b"message"),
        &length(5).repeat(2),
        &length(0).repeat(2),
    ]
    .concat();
    let time = 7_i64.to_le_bytes();
    for (rdb_type, value) in [
        (22, [&length(1)[..], &fields].concat()),
        (23, string(b"a listpack")),
        (24, [&time[..], &length(1), &fields].concat()),
        (25, [&time[..], &string(b"a listpack")].concat()),
        (26, stream),
    ] {
        let end = key(b"end", 0, &string(b"x"));
        let items = read(&file(13, &[&key(b"k", rdb_type, &value), &end])).unwrap();
        let expected = sealed(13, &[&[rdb_type], &value[..]].concat());
        let expected = found(b"k", RdbValue::Payload(expected.into()));
        assert_eq!((items.len(), &items[0]), (2, &expected), "{rdb_type}");
    }
    let of_valkey_22 = [&length(1)[..], &string(b"f"), &string(b"v"), &time].concat();
    let slots = [
        &[0xf3][..],
        &string(b"job"),
        &length(1),
        &length(0),
        &length(9),
    ]
    .concat();
    let items = [
        &slots[..],
        &key(b"k", 22, &of_valkey_22),
        &key(b"end", 0, &string(b"x")),
    ];
    assert_eq!(read(&of_valkey(80, &items)).unwrap().len(), 2);
}

#[test]
fn what_later_servers_write_between_keys_is_read() {
    let slot = [&[0xf4][..], &length(5), &length(2), &length(1)].concat();
    let about_key = [
        &[0xf3][..],
        &length(1),
        &[1, 2, 3, 4],
        &[5],
        &string(b"part"),
        &[0],
    ]
    .concat();
    let items = [
        &slot[..],
        &about_key,
        &key(b"k", 0, &string(b"x")),
        &key(b"l", 0, &string(b"x")),
    ];
    let items = read(&file(13, &items)).unwrap();
    let expected = [
        found(b"k", RdbValue::Module),
        found(b"l", payload(0, &string(b"x"))),
    ];
    assert_eq!(items, expected);
}

#[test]
fn a_file_says_what_it_is_in_an_append_only_file() {
    let fact = |name: &[u8], value: &[u8]| [&[OPCODE_FACT], &string(name)[..], value].concat();
    for (fact, role) in [
        (fact(b"aof-base", &[0xc0, 1]), AofRole::Base),
        (fact(b"aof-base", &[0xc0, 0]), AofRole::None),
        (fact(b"aof-preamble", &[0xc0, 1]), AofRole::Preamble),
        (fact(b"redis-bits", &[0xc0, 1]), AofRole::None),
    ] {
        let bytes = file(10, &[&fact, &key(b"k", 0, &string(b"x"))]);
        let mut reader = RdbReader::begin(&bytes[..], VALUE_BYTES_MAX).unwrap();
        reader.next_item().unwrap();
        assert_eq!(reader.aof_role(), role);
    }
}

#[test]
fn damage_is_noticed() {
    let items = [
        key(b"k", 0, &string(b"some text")),
        key(b"l", 1, &[1, 1, b'x']),
    ];
    let whole = file(10, &[&items.concat()]);
    assert_eq!(read(&whole).unwrap().len(), 2);
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        assert!(read(&damaged).is_err(), "a bit at {at}");
        assert!(read(&whole[..at]).is_err(), "cut at {at}");
    }
    // Redis was configured to write no checksum.
    let length = whole.len();
    let unchecked = [&whole[..length - 8], &[0; 8]].concat();
    assert_eq!(read(&unchecked).unwrap().len(), 2);
}

#[test]
fn a_value_that_is_too_large_is_passed_over() {
    let value = string(&vec![b'x'; 5_000]);
    let bytes = file(10, &[&key(b"k", 0, &value), &key(b"l", 0, &string(b"x"))]);
    let mut reader = RdbReader::begin(&bytes[..], 4_000).unwrap();
    let size = value.len() as u64;
    let item = reader.next_item().unwrap();
    assert_eq!(item, Some(found(b"k", RdbValue::TooLarge(size))));
    let item = reader.next_item().unwrap();
    assert_eq!(item, Some(found(b"l", payload(0, &string(b"x")))));
    // A length that exceeds the file reserves no memory.
    let claim = [&[0x81][..], &u64::MAX.to_be_bytes()].concat();
    let refused = read(&file(10, &[&key(b"k", 0, &claim)])).unwrap_err();
    assert!(matches!(refused, RdbError::Io { .. }), "{refused}");
}
