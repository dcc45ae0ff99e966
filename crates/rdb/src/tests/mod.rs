mod file;
mod own;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use super::payload::FOOTER_BYTES;
use super::testing::{
    crc64, hashes, intset, length, number_sets, old_lists, old_sets, sealed, sets, string, ziplist,
    zipmap,
};
use super::*;

fn list_of(payload: &[u8]) -> Result<Vec<Bytes>, DumpError> {
    ListElements::new(open(&Bytes::copy_from_slice(payload))?)?.collect()
}

fn set_of(payload: &[u8]) -> Result<Vec<(Bytes, f64)>, DumpError> {
    SortedSetMembers::new(open(&Bytes::copy_from_slice(payload))?)?.collect()
}

fn expiring_hash_of(payload: &[u8]) -> Result<Vec<HashField>, DumpError> {
    HashFields::new(open(&Bytes::copy_from_slice(payload))?)?.collect()
}

/// A hash whose fields do not expire.
fn hash_of(payload: &[u8]) -> Result<Vec<(Bytes, Bytes)>, DumpError> {
    let fields = expiring_hash_of(payload)?.into_iter();
    let pair = |field: HashField| {
        assert_eq!(field.expire_at_ms, None);
        (field.name, field.value)
    };
    Ok(fields.map(pair).collect())
}

fn members_of(payload: &[u8]) -> Result<Vec<Bytes>, DumpError> {
    SetMembers::new(open(&Bytes::copy_from_slice(payload))?)?.collect()
}

fn written_list(elements: &[Vec<u8>]) -> Bytes {
    let mut writer = ListWriter::new();
    for element in elements {
        writer.push(element);
    }
    writer.finish()
}

fn written_set(members: &[(Vec<u8>, f64)]) -> Bytes {
    let mut writer = SortedSetWriter::new(members.len() as u64);
    for (member, score) in members {
        writer.push(member, *score);
    }
    writer.finish()
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(|one| !one.is_whitespace()).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap())
        .collect()
}

/// Texts of every length class and integers of every width, and their neighbours.
fn element() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..80),
        any::<i64>().prop_map(|number| number.to_string().into_bytes()),
        (any::<i64>(), 0_u32..64)
            .prop_map(|(number, shift)| (number >> shift).to_string().into_bytes()),
        (
            any::<u8>(),
            prop::sample::select(vec![62, 63, 64, 4095, 4096, 8190, 16_383, 16_384])
        )
            .prop_map(|(byte, count)| vec![byte; count]),
    ]
}

fn score() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("scores are not NaN", |score| !score.is_nan()),
        (-1000_i32..1000).prop_map(f64::from),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
    ]
}

#[test]
fn the_checksum_is_that_of_redis() {
    assert_eq!(checksum(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
}

#[test]
fn a_small_list_is_written_as_redis_7_0_writes_it() {
    let payload = written_list(&[b"a".to_vec(), b"1".to_vec(), b"-5000".to_vec()]);
    // The reply of Redis 7.0.15.
    let expected = "120102101000000003008161020101f178ec03ff0a00be747725a27199b2";
    assert_eq!(payload[..], hex(expected));
}

#[test]
fn a_small_set_is_written_as_redis_7_0_writes_it() {
    let members = [(Bytes::from("a"), 1.0), (Bytes::from("b"), 1.5)];
    // The reply of Redis 7.0.15.
    let expected = "1114140000000400816102010181620283312e3504ff0a00c27c6981dda22270";
    assert_eq!(small_sorted_set(&members).unwrap()[..], hex(expected));
}

#[test]
fn a_list_of_many_bytes_is_split_into_nodes() {
    let elements = vec![vec![b'x'; 1000]; 100];
    let payload = written_list(&elements);
    // Type, and the number of nodes: eight elements fit into one.
    assert_eq!(payload[..2], [18, 13]);
    assert_eq!(list_of(&payload).unwrap(), elements);
}

#[test]
fn a_set_of_many_or_long_members_is_not_small() {
    let many: Vec<_> = (0..129)
        .map(|n| (Bytes::from(n.to_string()), 0.0))
        .collect();
    assert!(small_sorted_set(&many).is_none());
    assert!(small_sorted_set(&many[..128]).is_some());
    assert!(small_sorted_set(&[(Bytes::from(vec![b'x'; 65]), 0.0)]).is_none());
    assert!(small_sorted_set(&[(Bytes::from(vec![b'x'; 64]), 0.0)]).is_some());
}

#[test]
fn packed_strings_are_unpacked() {
    // An `a`, and a copy of it that overlaps itself.
    let packed = hex("c3 05 1a 00 61 e0 10 00");
    let value = [vec![1, 1], packed].concat();
    assert_eq!(list_of(&sealed(9, &value)).unwrap(), [vec![b'a'; 26]]);
}

#[test]
fn a_packed_string_of_another_length_than_it_says_is_refused() {
    for packed in [
        "c3 05 19 00 61 e0 10 00",
        "c3 05 1b 00 61 e0 10 00",
        // Reaches before the beginning.
        "c3 05 1a 00 61 e0 10 01",
        // Ends within a run or a copy.
        "c3 02 04 03 61",
        "c3 03 1a 00 61 e0",
        // Claims more than any string has.
        "c3 05 81 7fffffffffffffff 00 61 e0 10 00",
    ] {
        let value = [vec![1, 1], hex(packed)].concat();
        assert_eq!(
            list_of(&sealed(9, &value)),
            Err(DumpError::Format),
            "{packed}"
        );
    }
}

#[test]
fn strings_written_as_integers_are_read_as_text() {
    let value = hex("01 03 c0 80 c1 00 80 c2 00 00 00 80");
    assert_eq!(
        list_of(&sealed(9, &value)).unwrap(),
        ["-128", "-32768", "-2147483648"]
    );
}

#[test]
fn a_long_element_in_a_node_of_its_own_is_read() {
    let value = [
        hex("12 02 01"),
        string(b"plain"),
        hex("02 09 09000000 0100 01 01 ff"),
    ]
    .concat();
    assert_eq!(list_of(&sealed(11, &value)).unwrap(), ["plain", "1"]);
    let empty = hex("12 01 01 00");
    assert_eq!(list_of(&sealed(11, &empty)), Err(DumpError::Format));
    let unknown = hex("12 01 03 01 61");
    assert_eq!(list_of(&sealed(11, &unknown)), Err(DumpError::Format));
}

#[test]
fn versions_beyond_those_that_are_known_and_changed_bytes_are_refused() {
    let value = hex("01 01 01 61");
    for version in [1, 11, 12, 13, 80] {
        assert_eq!(list_of(&sealed(version, &value)).unwrap(), ["a"]);
    }
    for version in [14, 79, 81, u16::MAX] {
        let refused = list_of(&sealed(version, &value));
        assert_eq!(refused, Err(DumpError::VersionOrChecksum), "{version}");
    }
    let payload = sealed(11, &value);
    for place in 0..payload.len() {
        let mut changed = payload.clone();
        changed[place] ^= 1;
        assert_eq!(
            list_of(&changed),
            Err(DumpError::VersionOrChecksum),
            "{place}"
        );
    }
    assert_eq!(list_of(b"short"), Err(DumpError::VersionOrChecksum));
    assert_eq!(list_of(&sealed(11, b"")), Err(DumpError::Format));
}

#[test]
fn other_types_are_refused_by_name() {
    let refused = |rdb_type| {
        let payload = open(&sealed(11, &[rdb_type, 0]).into()).unwrap();
        assert!(!ListElements::reads(rdb_type) && !SortedSetMembers::reads(rdb_type));
        assert!(!HashFields::reads(rdb_type) && !SetMembers::reads(rdb_type));
        payload.refusal()
    };
    assert_eq!(refused(6), DumpError::OtherType("module value"));
    assert_eq!(refused(8), DumpError::Format);
    assert_eq!(refused(28), DumpError::Format);
}

#[test]
fn scores_that_are_no_numbers_are_refused() {
    let nan = [vec![5, 1], string(b"m"), f64::NAN.to_le_bytes().to_vec()].concat();
    assert_eq!(set_of(&sealed(9, &nan)), Err(DumpError::Format));
    let text_nan = [vec![3, 1], string(b"m"), vec![253]].concat();
    assert_eq!(set_of(&sealed(9, &text_nan)), Err(DumpError::Format));
    let entries = [b"m".to_vec(), b"x".to_vec()];
    let text = [vec![12], string(&ziplist(&entries))].concat();
    assert_eq!(set_of(&sealed(9, &text)), Err(DumpError::Format));
    let odd = [vec![12], string(&ziplist(&entries[..1]))].concat();
    assert_eq!(set_of(&sealed(9, &odd)), Err(DumpError::Format));
}

#[test]
fn a_count_that_the_bytes_do_not_bear_out_is_refused() {
    for value in [
        "01 81 ffffffffffffffff 01 61",
        "05 80 ffffffff 01 61",
        "12 81 7fffffffffffffff",
    ] {
        let payload = sealed(11, &hex(value));
        let payload = open(&payload.into()).unwrap();
        let is_refused = if ListElements::reads(payload.rdb_type()) {
            ListElements::new(payload).unwrap().last()
        } else {
            let members = SortedSetMembers::new(payload).unwrap();
            members.last().map(|one| one.map(|one| one.0))
        };
        assert_eq!(is_refused, Some(Err(DumpError::Format)), "{value}");
    }
}

#[test]
fn a_ziplist_that_contradicts_itself_is_refused() {
    let good = ziplist(&[b"ab".to_vec(), b"7".to_vec()]);
    for place in [0, 4, 8, 10, 14, good.len() - 1] {
        let mut bad = good.clone();
        bad[place] ^= 1;
        let value = [vec![10], string(&bad)].concat();
        assert_eq!(
            list_of(&sealed(9, &value)),
            Err(DumpError::Format),
            "{place}"
        );
    }
}

#[test]
fn a_small_hash_is_written_as_redis_7_0_writes_it() {
    let parts = ["a", "1", "field", "value"].map(Bytes::from);
    let fields = parts.chunks_exact(2).map(|pair| (&pair[0], &pair[1]));
    // The reply of Redis 7.0.15.
    let expected =
        hex("101a1a00000004008161020101856669656c64068576616c756506ff0a004abfbd627e9c3ea0");
    assert_eq!(small_hash(fields).unwrap()[..], expected);
}

#[test]
fn a_small_set_of_numbers_is_written_as_redis_7_0_writes_it() {
    // The reply of Redis 7.0.15.
    for (members, expected) in [
        (
            "1 -5 300",
            "0b0e0200000003000000fbff01002c010a000f5f7a8eb59409d2",
        ),
        (
            "40000 -1",
            "0b100400000002000000ffffffff409c00000a00b2d8ad84d8a0e0e1",
        ),
        (
            "5000000000 7",
            "0b180800000002000000070000000000000000f2052a010000000a0035860f1bac6c9796",
        ),
    ] {
        let members: Vec<Bytes> = members.split(' ').map(Bytes::from).collect();
        assert_eq!(small_set(members.iter()).unwrap()[..], hex(expected));
    }
}

#[test]
fn hashes_and_sets_of_much_are_not_small() {
    let bytes = |count: usize| Bytes::from(vec![b'1'; count]);
    let (short, long) = (bytes(64), bytes(65));
    assert!(small_hash([(&short, &short)].into_iter()).is_some());
    assert!(small_hash([(&short, &long)].into_iter()).is_none());
    assert!(small_hash([(&long, &short)].into_iter()).is_none());
    assert!(small_hash([(&short, &short); 128].into_iter()).is_some());
    assert!(small_hash([(&short, &short); 129].into_iter()).is_none());
    let numbers: Vec<Bytes> = (0..513).map(|number| number.to_string().into()).collect();
    assert!(small_set(numbers[1..].iter()).is_some());
    assert!(small_set(numbers.iter()).is_none());
    assert!(small_set([Bytes::from("01")].iter()).is_none());
}

#[test]
fn an_intset_that_contradicts_itself_is_refused() {
    let refused = |blob: Vec<u8>| {
        let value = [vec![11], string(&blob)].concat();
        assert_eq!(
            members_of(&sealed(9, &value)),
            Err(DumpError::Format),
            "{blob:?}"
        );
    };
    refused(intset(&[1, 1], 2));
    refused(intset(&[2, 1], 2));
    refused(intset(&[1], 3));
    refused(intset(&[1, 2], 2)[..11].to_vec());
    refused([intset(&[1, 2], 2), vec![0, 0]].concat());
    refused(vec![2, 0, 0]);
}

#[test]
fn a_zipmap_that_contradicts_itself_is_refused() {
    let fields = [(b"ab".to_vec(), b"c".to_vec()), (b"d".to_vec(), vec![])];
    let good = zipmap(&fields);
    let read = |blob: &[u8]| hash_of(&sealed(9, &[vec![9], string(blob)].concat()));
    assert_eq!(read(&good).unwrap().len(), 2);
    for place in [0, 1, 4, 5, good.len() - 1] {
        let mut bad = good.clone();
        bad[place] ^= 1;
        assert_eq!(read(&bad), Err(DumpError::Format), "{place}");
    }
    for length in 0..good.len() {
        assert_eq!(read(&good[..length]), Err(DumpError::Format), "{length}");
    }
}

proptest! {
    #[test]
    fn a_hash_is_read_in_every_encoding(fields in vec((element(), element()), 1..20)) {
        let expected: Vec<(Bytes, Bytes)> = fields
            .iter()
            .map(|(field, value)| (field.clone().into(), value.clone().into()))
            .collect();
        for (name, payload) in hashes(&fields) {
            prop_assert_eq!(hash_of(&payload).unwrap(), expected.clone(), "{}", name);
        }
        let mut writer = HashWriter::new(fields.len() as u64);
        for (field, value) in &fields {
            writer.push(field, value, None);
        }
        prop_assert_eq!(hash_of(&writer.finish()).unwrap(), expected.clone());
        let parts = expected.iter().map(|(field, value)| (field, value));
        if let Some(payload) = small_hash(parts) {
            prop_assert_eq!(hash_of(&payload).unwrap(), expected);
        }
    }

    #[test]
    fn a_hash_whose_fields_expire_is_read_as_it_was_written(
        parts in vec((element(), element(), proptest::option::of(1_i64..1 << 46)), 1..20),
    ) {
        let field = |(name, value, expire_at_ms): &(Vec<u8>, Vec<u8>, Option<i64>)| HashField {
            name: name.clone().into(),
            value: value.clone().into(),
            expire_at_ms: *expire_at_ms,
        };
        let mut fields: Vec<HashField> = parts.iter().map(field).collect();
        let first = fields.iter().filter_map(|field| field.expire_at_ms).min();
        let mut writer = HashWriter::expiring(fields.len() as u64, first.unwrap_or(1));
        for field in &fields {
            writer.push(&field.name, &field.value, field.expire_at_ms);
        }
        prop_assert_eq!(expiring_hash_of(&writer.finish()).unwrap(), fields.clone());
        if let Some(payload) = small_expiring_hash(fields.clone()) {
            fields.sort_by_key(|field| field.expire_at_ms.unwrap_or(i64::MAX));
            prop_assert_eq!(expiring_hash_of(&payload).unwrap(), fields);
        }
    }

    #[test]
    fn a_set_is_read_in_every_encoding(members in vec(element(), 1..20)) {
        for (name, payload) in sets(&members) {
            prop_assert_eq!(members_of(&payload).unwrap(), members.clone(), "{}", name);
        }
        let mut writer = SetWriter::new(members.len() as u64);
        for member in &members {
            writer.push(member);
        }
        prop_assert_eq!(members_of(&writer.finish()).unwrap(), members);
    }

    #[test]
    fn a_set_of_numbers_is_read_in_every_width(
        numbers in proptest::collection::btree_set(any::<i64>(), 1..20),
        shift in 0_u32..64,
    ) {
        let numbers: std::collections::BTreeSet<i64> =
            numbers.into_iter().map(|number| number >> shift).collect();
        let numbers: Vec<i64> = numbers.into_iter().collect();
        let members: Vec<Bytes> = numbers.iter().map(|number| number.to_string().into()).collect();
        let forms = number_sets(&numbers);
        prop_assert!(!forms.is_empty());
        for (name, payload) in forms {
            prop_assert_eq!(members_of(&payload).unwrap(), members.clone(), "{}", name);
        }
        let written = small_set(members.iter()).unwrap();
        prop_assert_eq!(members_of(&written).unwrap(), members);
    }

    #[test]
    fn a_list_that_was_written_is_read_as_it_was(elements in vec(element(), 0..40)) {
        prop_assert_eq!(list_of(&written_list(&elements)).unwrap(), elements);
    }

    #[test]
    fn a_set_that_was_written_is_read_as_it_was(members in vec((element(), score()), 0..40)) {
        let read = set_of(&written_set(&members)).unwrap();
        prop_assert_eq!(read.len(), members.len());
        for (read, written) in read.iter().zip(&members) {
            prop_assert_eq!(&read.0, &written.0);
            prop_assert_eq!(read.1.to_bits(), written.1.to_bits());
        }
    }

    #[test]
    fn a_small_set_that_was_written_is_read_as_it_was(
        members in vec((vec(any::<u8>(), 0..=64), score()), 0..=128),
    ) {
        let members: Vec<_> = members.into_iter().map(|(one, score)| (one.into(), score)).collect();
        prop_assert_eq!(set_of(&small_sorted_set(&members).unwrap()).unwrap(), members);
    }

    #[test]
    fn lists_of_old_encodings_are_read(elements in vec(element(), 1..20)) {
        for (name, payload) in old_lists(&elements) {
            prop_assert_eq!(list_of(&payload).unwrap(), elements.clone(), "{}", name);
        }
    }

    #[test]
    fn sets_of_old_encodings_are_read(members in vec((element(), -1e6_f64..1e6), 1..20)) {
        for (name, payload) in old_sets(&members) {
            let read = set_of(&payload).unwrap();
            let expected: Vec<_> =
                members.iter().map(|(one, score)| (one.clone().into(), *score)).collect();
            prop_assert_eq!(read, expected, "{}", name);
        }
    }

    #[test]
    fn changed_values_are_read_or_refused_and_end(
        elements in vec(element(), 1..8),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        form in 0_usize..13,
    ) {
        let members: Vec<_> = elements.iter().map(|one| (one.clone(), 1.5)).collect();
        let fields: Vec<_> = elements.iter().map(|one| (one.clone(), one.clone())).collect();
        let forms = [
            old_lists(&elements),
            old_sets(&members),
            hashes(&fields),
            sets(&elements),
            number_sets(&[-40_000, 7, 70_000])[..1].to_vec(),
        ];
        let forms = forms.concat();
        let mut value = forms[form].1.clone();
        value.truncate(value.len() - FOOTER_BYTES);
        for (place, byte) in changes {
            let place = place.index(value.len());
            value[place] = byte;
        }
        let claimed = value.len() * 300;
        if let Ok(payload) = open(&sealed(11, &value).into()) {
            let elements = ListElements::new(payload.clone()).map_or(0, Iterator::count);
            let scored = SortedSetMembers::new(payload.clone()).map_or(0, Iterator::count);
            let fields = HashFields::new(payload.clone()).map_or(0, Iterator::count);
            let members = SetMembers::new(payload).map_or(0, Iterator::count);
            prop_assert!(elements + scored + fields + members <= claimed);
        }
    }

    #[test]
    fn lengths_of_every_width_are_read(number in 0_u64..=u64::MAX, shift in 0_u32..64) {
        let number = number >> shift;
        let mut bytes = vec![1];
        if let Ok(number) = u16::try_from(number) {
            bytes.extend(length(number.into()));
        } else {
            bytes.push(0x81);
            bytes.extend(number.to_be_bytes());
        }
        let opened = open(&sealed(9, &bytes).into()).unwrap();
        let mut elements = ListElements::new(opened).unwrap();
        let expected = if number == 0 { None } else { Some(Err(DumpError::Format)) };
        prop_assert_eq!(elements.next(), expected);
    }
}

#[test]
fn a_stream_keeps_when_consumers_were_active_if_its_source_knows() {
    let consumer = |active_at_ms| DumpedConsumer {
        name: Bytes::from(format!("consumer {active_at_ms:?}")),
        seen_at_ms: 7,
        active_at_ms,
        pending: Vec::new(),
    };
    let stream = DumpedStream {
        last: (5, 1),
        deleted: (3, 0),
        added: 9,
        groups: vec![DumpedGroup {
            name: Bytes::from("group"),
            last: (4, 0),
            entries_read: None,
            pending: Vec::new(),
            consumers: vec![consumer(Some(5)), consumer(None)],
        }],
    };
    let mut writer = StreamWriter::new();
    writer.push((5, 1), vec![Bytes::from("name"), Bytes::from("value")]);
    let second = writer.finish(&stream);
    // The later form has another number, and a time for each consumer. The last time is -1.
    let mut value = vec![21];
    value.extend(&second[1..second.len() - FOOTER_BYTES]);
    let seen = 7_i64.to_le_bytes();
    let places: Vec<usize> = (0..value.len())
        .filter(|at| value[*at..].starts_with(&seen))
        .collect();
    let [first, last] = places[..] else {
        panic!("{places:?}")
    };
    value.splice(last + 8..last + 8, (-1_i64).to_le_bytes());
    value.splice(first + 8..first + 8, 5_i64.to_le_bytes());
    let payload: Bytes = sealed(VERSION_WRITTEN, &value).into();
    for (payload, read) in [
        (&second, vec![Some(7), Some(7)]),
        (&payload, vec![Some(5), None]),
    ] {
        let mut reader = StreamReader::new(open(payload).unwrap()).unwrap();
        let mut writer = reader.writer();
        while let Some((id, fields)) = reader.next_entry().unwrap() {
            writer.push(id, fields);
        }
        let found = reader.finish().unwrap();
        let times = found.groups[0].consumers.iter();
        assert_eq!(times.map(|one| one.active_at_ms).collect::<Vec<_>>(), read);
        // The versions of the footers may differ.
        let value = |payload: &Bytes| payload.slice(..payload.len() - FOOTER_BYTES);
        assert_eq!(value(&writer.finish(&found)), value(payload));
    }
}

/// Hashes with fields that may expire: two fields, one or none of which does.
fn expiring_hashes(first_expires: bool) -> Vec<(&'static str, u16, Vec<u8>)> {
    let at = |expires: bool| 4_000_000_000_000_i64 * i64::from(expires);
    let packed = |expires: bool| {
        let mut listpack = super::packed::ListpackWriter::new();
        for (field, expires) in [(b"a", expires), (b"b", false)] {
            listpack.push(field);
            listpack.push(b"v");
            listpack.push_integer(at(expires));
        }
        string(&listpack.finish())
    };
    let plain: Vec<u8> = [(b"a", first_expires), (b"b", false)]
        .into_iter()
        .flat_map(|(field, expires)| [length(expires.into()), string(field), string(b"v")])
        .collect::<Vec<_>>()
        .concat();
    let of_valkey = [(b"a", first_expires), (b"b", false)].map(|(field, expires)| {
        let time = if expires { at(true) } else { -1 };
        [string(field), string(b"v"), time.to_le_bytes().to_vec()].concat()
    });
    let first = at(true).to_le_bytes();
    vec![
        ("22", 12, [vec![22], length(2), plain.clone()].concat()),
        ("23", 12, [vec![23], packed(first_expires)].concat()),
        ("24", 12, [&[24], &first[..], &length(2), &plain].concat()),
        (
            "25",
            13,
            [&[25], &first[..], &packed(first_expires)].concat(),
        ),
        (
            "22 of Valkey",
            80,
            [vec![22], length(2), of_valkey.concat()].concat(),
        ),
    ]
}

#[test]
fn a_time_before_all_times_is_no_time() {
    let value = [
        vec![24],
        vec![0; 8],
        length(1),
        length(1),
        string(b"a"),
        string(b"v"),
    ]
    .concat();
    let found = expiring_hash_of(&sealed(12, &value)).unwrap();
    assert_eq!(found[0].expire_at_ms, Some(0));
    let value = [
        vec![24],
        vec![0xff; 8],
        length(1),
        length(1),
        string(b"a"),
        string(b"v"),
    ]
    .concat();
    assert_eq!(
        expiring_hash_of(&sealed(12, &value)),
        Err(DumpError::Format)
    );
}

#[test]
fn a_hash_whose_fields_may_expire_is_read_in_every_encoding() {
    let fields = [
        (Bytes::from("a"), Bytes::from("v")),
        (Bytes::from("b"), Bytes::from("v")),
    ];
    for (form, version, value) in expiring_hashes(false) {
        let found = hash_of(&sealed(version, &value));
        assert_eq!(found.as_deref(), Ok(&fields[..]), "{form}");
    }
    for (form, version, value) in expiring_hashes(true) {
        let found = expiring_hash_of(&sealed(version, &value)).unwrap();
        // The first form contains the time itself, as a length.
        let at_ms = if form == "22" { 1 } else { 4_000_000_000_000 };
        let expiries: Vec<_> = found.iter().map(|field| field.expire_at_ms).collect();
        assert_eq!(expiries, [Some(at_ms), None], "{form}");
        // A truncated value is detected.
        let cut = expiring_hash_of(&sealed(version, &value[..value.len() - 1]));
        assert!(cut.is_err(), "{form}");
    }
}

#[test]
fn an_expiry_of_a_field_that_is_out_of_range_is_refused() {
    let too_late = (1_i64 << 48) - 1;
    for (rdb_type, first, behind) in [
        (24, too_late, length(1)),
        (24, -1, length(1)),
        (
            24,
            1,
            [vec![0x81], too_late.to_be_bytes().to_vec()].concat(),
        ),
        (22, 0, [vec![0x81], vec![0xff; 8]].concat()),
    ] {
        let first = if rdb_type == 24 {
            first.to_le_bytes().to_vec()
        } else {
            Vec::new()
        };
        let value = [
            vec![rdb_type],
            first,
            length(1),
            behind,
            string(b"f"),
            string(b"v"),
        ];
        let read = expiring_hash_of(&sealed(12, &value.concat()));
        assert_eq!(read, Err(DumpError::Format));
    }
}

#[test]
fn a_stream_that_remembers_producers_is_read_without_them() {
    let mut writer = StreamWriter::with_activity();
    writer.push((5, 1), vec!["a".into(), "b".into()]);
    let whole = DumpedStream {
        last: (5, 1),
        deleted: (0, 0),
        added: 1,
        groups: Vec::new(),
    };
    let third = writer.finish(&whole);
    let mut value = third[..third.len() - 10].to_vec();
    value[0] = 26;
    value.extend(
        [
            length(100),
            length(10),
            length(1),
            string(b"producer"),
            length(1),
        ]
        .concat(),
    );
    value.extend(
        [
            string(b"message"),
            length(5),
            length(1),
            length(1),
            length(0),
        ]
        .concat(),
    );
    let read = |value: &[u8]| {
        let mut reader = StreamReader::new(open(&sealed(13, value).into())?)?;
        let mut entries = 0;
        while reader.next_entry()?.is_some() {
            entries += 1;
        }
        Ok::<_, DumpError>((entries, reader.finish()?))
    };
    assert_eq!(read(&value), Ok((1, whole)));
    assert_eq!(read(&value[..value.len() - 1]), Err(DumpError::Format));
}
