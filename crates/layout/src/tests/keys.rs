//! Keys of the store, metadata, users, messages.

use super::*;

#[test]
fn keys_of_the_store_itself() {
    let layout = layout();
    golden("version", &layout.version_key(), "0271756f696e0014");
    golden("store id", &layout.store_id_key(), "0271756f696e001414");
    golden(
        "secret of links",
        &layout.link_secret_key(),
        "0271756f696e00141501",
    );
    golden("instances", &layout.instances_key(), "0271756f696e001506");
    golden(
        "database 3",
        &layout.database_key(3),
        "0271756f696e0015071503",
    );
    golden("namespace (1, 300)", &encode_id(DATA), "150116012c");
    golden(
        "operation of instance 1, slot 2",
        &layout.operation_key(1, 2),
        "0271756f696e00150515011502",
    );
    golden(
        "data id (1, 300) in the trash",
        &layout.trash_key(TrashKind::Data, DATA),
        "0271756f696e00150414150116012c",
    );
    golden("counter 258", &encode_counter(258), "0201000000000000");
    golden(
        "length 258 after 3 changes",
        &encode_length(258, 3),
        "0201000000030000",
    );
}

#[test]
fn keys_of_keys() {
    let layout = layout();
    let name = KeyName::new(&Bytes::from_static(b"jobs"));
    let meta_key = layout.meta_key(NAMESPACE, &name);
    golden(
        "metadata of `jobs`",
        &meta_key,
        "0271756f696e0015011415031ad97cb6cc6471016a6f627300",
    );
    golden(
        "length of `jobs`",
        &layout.length_key(&meta_key),
        "0271756f696e0015011415031ad97cb6cc6471016a6f62730014",
    );
    golden(
        "expiry of `jobs` at 1700000000000",
        &layout.expiry_key(1_700_000_000_000, NAMESPACE, &name),
        "0271756f696e0015031a018bcfe568001415031ad97cb6cc6471016a6f627300",
    );
    let long = KeyName::new(&Bytes::from(vec![b'k'; 901]));
    let key = layout.meta_key(NAMESPACE, &long);
    assert!(key.len() < 120, "a long name stands as its digest");
}

#[test]
fn values_of_keys() {
    let meta = Meta {
        value_type: ValueType::List,
        data: DATA,
        expire_at_ms: None,
        long_name: None,
        inline: None,
        rank_levels: 0,
        fields_expire: false,
        is_kept: false,
    };
    golden(
        "metadata: list, data (1, 300)",
        &meta.encode(),
        "011501150116012c0000",
    );
    let meta = Meta {
        value_type: ValueType::SortedSet,
        expire_at_ms: Some(1_700_000_000_000),
        ..meta
    };
    golden(
        "metadata: sorted set, expiry",
        &meta.encode(),
        "011502150116012c1a018bcfe5680000",
    );
    let ranked = Meta {
        expire_at_ms: None,
        rank_levels: 2,
        ..meta.clone()
    };
    golden(
        "metadata: sorted set with 2 levels of blocks",
        &ranked.encode(),
        "031502150116012c00001502",
    );
    assert_eq!(Meta::decode(&ranked.encode().into()).unwrap(), ranked);
    let expiring = Meta {
        value_type: ValueType::Hash,
        expire_at_ms: None,
        fields_expire: true,
        ..meta.clone()
    };
    golden(
        "metadata: hash whose fields may expire",
        &expiring.encode(),
        "041506150116012c0000",
    );
    assert_eq!(Meta::decode(&expiring.encode().into()).unwrap(), expiring);
    let kept = Meta {
        value_type: ValueType::TaskQueue,
        rank_levels: 0,
        is_kept: true,
        ..ranked
    };
    golden(
        "metadata: task queue with options",
        &kept.encode(),
        "051504150116012c000014",
    );
    assert_eq!(Meta::decode(&kept.encode().into()).unwrap(), kept);
    let inline = InlineValue {
        bytes: Bytes::from_static(b"work"),
        changes: 3,
    };
    let meta = Meta {
        value_type: ValueType::String,
        expire_at_ms: None,
        inline: Some(inline),
        ..meta
    };
    golden(
        "metadata: string `work` after 3 changes",
        &meta.encode(),
        "021505150116012c00000003776f726b",
    );
    let entry = Entry::new(Bytes::from_static(b"f"), Bytes::from_static(b"work"));
    golden(
        "inline value of a hash with the field `f` = `work`",
        &FieldRow::Hash
            .encode_inline(std::slice::from_ref(&entry), 64)
            .unwrap(),
        "016604776f726b",
    );
    golden(
        "inline value of a set with the member `f`",
        &FieldRow::Set.encode_inline(&[entry], 64).unwrap(),
        "0166",
    );
}

#[test]
fn rows_of_users() {
    let layout = layout();
    golden(
        "version of the users",
        &layout.users_version_key(),
        "0271756f696e00150c14",
    );
    let key = layout.user_key(b"bob");
    golden("user `bob`", &key, "0271756f696e00150c150101626f6200");
    assert_eq!(layout.read_user_key(&key).unwrap(), b"bob");
    let value = encode_user(b"on ~* +@all");
    golden("rules of a user", &value, "016f6e207e2a202b40616c6c");
    assert_eq!(decode_user(&value).unwrap(), b"on ~* +@all");
}

#[test]
fn rows_of_servers() {
    let layout = layout();
    let key = layout.server_key(300);
    golden("server start 300", &key, "0271756f696e00150d1416012c");
    assert_eq!(
        layout.read_servers_key(&key).unwrap(),
        ServersKey::Server(300)
    );
    let row = ServerRow {
        beat: 7,
        port: 6379,
        tls_port: 6380,
        sentinel_port: 26379,
        sentinel_tls_port: 0,
        run_id: "ab".to_owned(),
        version: "0.1.0".to_owned(),
        ip: "10.0.0.1".to_owned(),
        hostname: "a.b".to_owned(),
        cluster_port: 7000,
        cluster_tls_port: 0,
    };
    golden(
        "server with the ports 6379, 6380, 26379, 0, 7000 and 0, run id `ab`, version `0.1.0`, at `10.0.0.1` and `a.b`",
        &row.encode(),
        "01000000000000000718eb18ec670b000002616205302e312e300831302e302e302e3103612e621b580000",
    );
    assert_eq!(ServerRow::decode(&row.encode()).unwrap(), row);
    // Versions of Quoin must agree on it.
    assert_eq!(row.score(b"mymaster"), 11_157_320_470_753_359_575);
    let key = layout.choice_key(b"mymaster");
    golden(
        "server that was chosen for `mymaster`",
        &key,
        "0271756f696e00150d1501016d796d617374657200",
    );
    golden("server start 300, chosen", &encode_choice(300), "16012c");
}

#[test]
fn rows_of_messages() {
    let layout = layout();
    golden("bell", &layout.bell_key(), "0271756f696e00150814");
    let prefix = layout.messages_prefix();
    let mut key = prefix.clone();
    key.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3]);
    golden(
        "row 3 of the messages of one commit",
        &key,
        "0271756f696e001508150133000000000000000102000003",
    );
    assert_eq!(
        layout.read_message_key(&key).unwrap(),
        ([0, 0, 0, 0, 0, 0, 0, 1, 2, 0], 3)
    );
    let range = layout.messages();
    assert!(range.begin < prefix && key < range.end);
    let messages = [(0, &b"c"[..], &b"m"[..]), (1, b"s", b"")];
    golden(
        "messages of instance 2: `m` in `c`, and an empty one in the shard channel `s`",
        &message::encode_messages(2, messages.into_iter())[0],
        "0000010000000000000002000000000163000000016d01000000017300000000",
    );
    let names = message::encode_names([Bytes::from_static(b"a")].iter());
    let changes = [(2, &b""[..], &names[..]), (3, b"", b"")];
    golden(
        "messages of instance 2: the key `a` has changed, then all keys",
        &message::encode_messages(2, changes.into_iter())[0],
        "00000100000000000000020200000000000000050000000161030000000000000000",
    );
    golden(
        "last message that was cleared",
        &layout.messages_cleared_key(),
        "0271756f696e0015081504",
    );
}

#[test]
fn rows_of_change_marks() {
    let layout = layout();
    let key = layout.change_mark_key(300);
    golden("mark of instance 300", &key, "0271756f696e001508150216012c");
    assert_eq!(layout.read_change_mark_key(&key).unwrap(), 300);
    let range = layout.change_marks();
    assert!(range.begin < key && key < range.end);
    golden(
        "sign of life of instance 300",
        &layout.change_mark_beat_key(300),
        "0271756f696e001508150316012c",
    );
}

#[test]
fn additions_to_a_length_count_its_changes_and_never_touch_the_length_with_them() {
    let mut stored = i64::from_le_bytes(encode_length(1, u64::MAX));
    for delta in [5, -6, 0, 2, -1] {
        stored = stored.wrapping_add(length_delta(delta));
    }
    let row = Bytes::copy_from_slice(&stored.to_le_bytes());
    assert_eq!(decode_length(Some(&row)).unwrap(), 1);
    assert_eq!(row.as_ref(), encode_length(1, 4));
}
