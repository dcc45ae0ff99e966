//! Values: strings, hashes, sets, lists, sorted sets.

use super::*;

#[test]
fn fields_members_and_pieces() {
    let layout = layout();
    let name = Member::new(&Bytes::from_static(b"f"));
    golden(
        "field `f` of a hash",
        &layout.field_key(DATA, FieldRow::Hash, &name),
        "0271756f696e001502150116012c15051a2d1720544b23016600",
    );
    golden(
        "field `f` that expires at 1700000000000",
        &layout
            .field_expiry_key(
                DATA,
                1_700_000_000_000,
                &layout.field_key(DATA, FieldRow::Hash, &name),
            )
            .unwrap(),
        "0271756f696e001502150116012c15191a018bcfe568001a2d1720544b23016600",
    );
    golden(
        "value `work` of a field that expires at 1700000000000",
        &FieldValue {
            expire_at_ms: Some(1_700_000_000_000),
            stored: StoredValue::encode_plain(b"work").into(),
        }
        .encode(),
        "021a018bcfe5680000776f726b",
    );
    golden(
        "member `f` of a set",
        &layout.field_key(DATA, FieldRow::Set, &name),
        "0271756f696e001502150116012c15061a2d1720544b23016600",
    );
    golden(
        "piece 2 of a string",
        &layout.piece_key(DATA, 2),
        "0271756f696e001502150116012c15071502",
    );
}

#[test]
fn rows_of_lists() {
    let layout = layout();
    golden(
        "element (−1, 7, 0)",
        &layout.element_key(DATA, &Position::pushed(-1, 7, 0)),
        "0271756f696e001502150116012c1413fe150714",
    );
    golden(
        "element (0, 7, 1, 1048576)",
        &layout.element_key(DATA, &Position(vec![0, 7, 1, 1_048_576])),
        "0271756f696e001502150116012c14141507150117100000",
    );
    golden(
        "value `job`",
        &StoredValue::encode_plain(b"job"),
        "006a6f62",
    );
    golden(
        "run of `job` and `task` after 2 places",
        &Run::new(
            2,
            &[Bytes::from_static(b"job"), Bytes::from_static(b"task")],
        )
        .encode(),
        "030002036a6f62047461736b",
    );
    golden(
        "value of 350000 bytes in chunks (1, 9)",
        &StoredValue::encode_split(
            Id {
                instance: 1,
                sequence: 9,
            },
            350_000,
        ),
        "011501150917055730",
    );
    golden(
        "chunk 2 of (1, 9)",
        &layout.chunk_key(
            DATA,
            Id {
                instance: 1,
                sequence: 9,
            },
            2,
        ),
        "0271756f696e001502150116012c1503150115091502",
    );
}

#[test]
fn rows_of_sorted_sets() {
    let layout = layout();
    let member = Member::new(&Bytes::from_static(b"a\0b"));
    golden(
        "score 1.5, member `a\\0b`",
        &layout.score_key(DATA, 1.5, member.indexed_prefix(), None),
        "0271756f696e001502150116012c150121bff8000000000000016100ff6200",
    );
    golden(
        "member `a\\0b`",
        &layout.member_key(DATA, &member),
        "0271756f696e001502150116012c15021adc6e953a4a09016100ff6200",
    );
    let end = b"\x21\xbf\xf8";
    golden(
        "count of a block of level 2 that ends at `21 bf f8`",
        &layout.rank_count_key(DATA, 2, end),
        "0271756f696e001502150116012c1517150221bff8",
    );
    golden(
        "mark of that block",
        &layout.rank_mark_key(DATA, 2, end),
        "0271756f696e001502150116012c1518150221bff8",
    );
    golden(
        "member's score 1.5",
        &MemberEntry {
            score: 1.5,
            long: None,
        }
        .encode(),
        "21bff8000000000000",
    );
}

proptest! {
    #[test]
    fn places_of_tasks_compare_as_their_bytes(
        a in (-1e9..1e9_f64, 0..1_000_i64, any::<i64>()),
        b in (-1e9..1e9_f64, 0..1_000_i64, any::<i64>()),
    ) {
        let place = |(priority, index, random): (f64, i64, i64)| TaskPlace { priority, index, random };
        prop_assert_eq!(a.partial_cmp(&b).unwrap(), place(a).encode().cmp(&place(b).encode()));
    }

    #[test]
    fn places_in_the_order_compare_by_group_and_those_without_one_come_last(
        a in (any::<Option<Vec<u8>>>(), -2..2_i32, 0..3_i64),
        b in (any::<Option<Vec<u8>>>(), -2..2_i32, 0..3_i64),
    ) {
        type Parts = (Option<Vec<u8>>, i32, i64);
        let place = |(group, priority, index): &Parts| OrderPlace {
            group: group.clone().map(Bytes::from),
            place: TaskPlace { priority: f64::from(*priority), index: *index, random: 0 },
        };
        let order = |(group, priority, index): &Parts| (group.is_none(), group.clone(), *priority, *index);
        prop_assert_eq!(order(&a).cmp(&order(&b)), place(&a).encode().cmp(&place(&b).encode()));
        prop_assert_eq!(OrderPlace::decode(&place(&a).encode()).unwrap(), place(&a));
    }

    #[test]
    fn a_key_is_read_back(name in proptest::collection::vec(any::<u8>(), 0..1200), at_ms in any::<i64>()) {
        let layout = layout();
        let bytes = Bytes::from(name);
        let name = KeyName::new(&bytes);
        let meta_key = layout.meta_key(NAMESPACE, &name);
        prop_assert_eq!(layout.read_keys_row(&meta_key).unwrap(), KeysRow::Meta(name.clone()));
        let length_key = layout.length_key(&meta_key);
        prop_assert_eq!(layout.read_keys_row(&length_key).unwrap(), KeysRow::Length(name.clone()));
        prop_assert!(meta_key < length_key);
        let expiry_key = layout.expiry_key(at_ms, NAMESPACE, &name);
        prop_assert_eq!(layout.read_expiry_key(&expiry_key).unwrap(), (at_ms, NAMESPACE, name));
    }

    #[test]
    fn metadata_is_read_back(instance in any::<u64>(), sequence in any::<u64>(), expire_at_ms in any::<Option<i64>>(), long in any::<Option<Vec<u8>>>()) {
        let meta = Meta {
            value_type: ValueType::SortedSet,
            data: Id { instance, sequence },
            expire_at_ms,
            long_name: long.map(Bytes::from),
            inline: None,
            rank_levels: 0,
            fields_expire: false,
            is_kept: false,
        };
        prop_assert_eq!(Meta::decode(&meta.encode().into()).unwrap(), meta);
    }

    #[test]
    fn score_keys_order_as_redis_orders_members(
        a in (any::<f64>(), proptest::collection::vec(any::<u8>(), 0..6)),
        b in (any::<f64>(), proptest::collection::vec(any::<u8>(), 0..6)),
    ) {
        prop_assume!(!a.0.is_nan() && !b.0.is_nan());
        let layout = layout();
        let key_a = layout.score_key(DATA, a.0, &a.1, None);
        let key_b = layout.score_key(DATA, b.0, &b.1, None);
        let wanted = a.0.partial_cmp(&b.0).unwrap().then_with(|| a.1.cmp(&b.1));
        prop_assert_eq!(key_a.cmp(&key_b), wanted);
        let prefix = layout.scores_prefix(DATA);
        let entry = layout.read_score_key(prefix.len(), &key_a).unwrap();
        prop_assert_eq!(entry.score, a.0);
        prop_assert_eq!(entry.prefix, Bytes::from(a.1));
    }

    #[test]
    fn no_key_is_longer_than_a_store_can_hold(byte in any::<u8>(), length in 0_usize..3000) {
        let layout = layout();
        let widest = Id { instance: u64::MAX, sequence: u64::MAX };
        let bytes = Bytes::from(vec![byte; length]);
        let meta_key = layout.meta_key(widest, &KeyName::new(&bytes));
        let member = Member::new(&bytes);
        let label = Position(vec![i64::MAX; 8]);
        let keys = [
            layout.length_key(&meta_key),
            layout.expiry_key(i64::MAX, widest, &KeyName::new(&bytes)),
            layout.member_key(widest, &member),
            layout.score_key(widest, f64::MAX, member.indexed_prefix(), Some(&label)),
        ];
        for key in keys {
            prop_assert!(key.len() <= 1982, "{} bytes", key.len());
        }
    }

    #[test]
    fn whatever_the_bytes_reading_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let layout = Layout::new("");
        let _ = layout.read_keys_row(&bytes);
        let _ = layout.read_expiry_key(&bytes);
        let _ = layout.read_trash_key(&bytes);
        let _ = layout.read_score_key(0, &bytes);
        let _ = layout.read_position(0, &bytes);
        let _ = layout.read_queue_key(0, &bytes);
        let _ = layout.member_keys(DATA).read(&Bytes::from(bytes.clone()));
        let _ = Meta::decode(&Bytes::from(bytes.clone()));
        let _ = MemberEntry::decode(&bytes);
        let _ = layout.read_servers_key(&bytes);
        let _ = ServerRow::decode(&bytes);
        let _ = decode_choice(&bytes);
        let _ = StoredValue::decode(&Bytes::from(bytes));
    }
}

#[test]
fn a_long_member_stands_behind_its_prefix_and_before_all_that_is_greater() {
    let layout = layout();
    let prefix = vec![b'm'; INLINE_NAME_BYTES_MAX];
    let label = Position(vec![0]);
    let exact = layout.score_key(DATA, 1.0, &prefix, None);
    let long = layout.score_key(DATA, 1.0, &prefix, Some(&label));
    let mut greater = prefix.clone();
    greater.pop();
    greater.push(b'n');
    let greater = layout.score_key(DATA, 1.0, &greater, None);
    assert!(exact < long && long < greater);
    let range = layout.long_members(DATA, 1.0, &prefix);
    assert!(range.begin <= long && long < range.end);
    assert!(exact < range.begin && range.end <= greater);
}

#[test]
fn zero_has_one_key_whatever_its_sign() {
    let layout = layout();
    assert_eq!(
        layout.score_key(DATA, -0.0, b"m", None),
        layout.score_key(DATA, 0.0, b"m", None)
    );
}
