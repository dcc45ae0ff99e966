//! Golden bytes: data that was stored once must stay readable, so a change here is a change of
//! [`LAYOUT_VERSION`] with a way to read the old. Each row stands in docs/understand/layout.md too.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use quoin_base::limits::INLINE_NAME_BYTES_MAX;

const DOCUMENT: &str = include_str!("../../../docs/understand/layout.md");

const NAMESPACE: Id = Id {
    instance: 0,
    sequence: 3,
};
const DATA: Id = Id {
    instance: 1,
    sequence: 300,
};

fn layout() -> Layout {
    Layout::new("quoin")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Checks bytes, and that the document shows them under the same title.
fn golden(title: &str, bytes: &[u8], expected: &str) {
    assert_eq!(hex(bytes), expected, "{title}");
    let row = format!("| {title} | `{expected}` |");
    assert!(
        DOCUMENT.contains(&row),
        "docs/understand/layout.md lacks the row\n{row}"
    );
}

#[test]
fn keys_of_the_store_itself() {
    let layout = layout();
    golden("version", &layout.version_key(), "0271756f696e0014");
    golden("store id", &layout.store_id_key(), "0271756f696e001414");
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
fn rows_of_delegation() {
    let layout = layout();
    let id = Id {
        instance: 7,
        sequence: 9,
    };
    let request = PopRequest {
        id,
        at_ms: 1_700_000_000_000,
        from_end: true,
        runs: vec![PopRun {
            count: 1,
            commands: 4_000,
        }],
    };
    golden(
        "request (7, 9) of 1700000000000 for data (1, 300)",
        &layout.pop_request_key(DATA, &request),
        "0271756f696e00150a14150116012c1a018bcfe5680015071509",
    );
    golden(
        "request: from the end, 4000 commands of 1 element",
        &request.encode(),
        "0115011501160fa0",
    );
    golden(
        "grant (7, 9) on data (1, 300)",
        &layout.grant_key(DATA, id),
        "0271756f696e00150a1501150116012c15071509",
    );
    let grant = Grant {
        namespace: NAMESPACE,
        name: KeyName::new(&Bytes::from_static(b"jobs")),
        long_name: None,
        value_type: ValueType::List,
        from_end: false,
        is_exhausted: false,
        expires_at_ms: 1_700_000_000_000,
    };
    golden(
        "grant: list `jobs`, expires at 1700000000000",
        &grant.encode(),
        "011415031ad97cb6cc6471016a6f627300150114141a018bcfe5680000",
    );
    golden(
        "piece 2 of grant (7, 9)",
        &layout.grant_piece_key(DATA, id, 2),
        "0271756f696e00150a1502150116012c150715091502",
    );
    let element = PoppedElement {
        name: Bytes::from_static(b"ab"),
        value: Bytes::from_static(b"c"),
    };
    golden(
        "element `ab` = `c` of a grant",
        &encode_elements(&[element]).concat(),
        "0000000261620000000163",
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
        body: None,
        rank_levels: 0,
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
    let body = Body {
        bytes: Bytes::from_static(b"work"),
        changes: 3,
    };
    let meta = Meta {
        value_type: ValueType::String,
        expire_at_ms: None,
        body: Some(body),
        ..meta
    };
    golden(
        "metadata: string `work` after 3 changes",
        &meta.encode(),
        "021505150116012c00000003776f726b",
    );
    let entry = Entry {
        name: Bytes::from_static(b"f"),
        value: Bytes::from_static(b"work"),
    };
    golden(
        "body of a hash with the field `f` = `work`",
        &FieldRow::Hash
            .encode_body(std::slice::from_ref(&entry), 64)
            .unwrap(),
        "016604776f726b",
    );
    golden(
        "body of a set with the member `f`",
        &FieldRow::Set.encode_body(&[entry], 64).unwrap(),
        "0166",
    );
}

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

#[test]
fn rows_of_scripts() {
    let layout = layout();
    golden(
        "flushes of scripts",
        &layout.script_flushes_key(),
        "0271756f696e00150b14",
    );
    golden(
        "script `ab`",
        &layout.script_key("ab"),
        "0271756f696e00150b150102616200",
    );
    golden(
        "piece 1 of script `ab`",
        &layout.script_piece_key("ab", 1),
        "0271756f696e00150b1501026162001501",
    );
    golden(
        "script `ab` in the index of those of EVAL, at 7",
        &layout.script_by_time_key(7, "ab"),
        "0271756f696e00150b1503150702616200",
    );
    let stored = StoredScript {
        origin: ScriptOrigin::Load,
        at_ms: 7,
        length: 300,
    };
    golden(
        "script of SCRIPT LOAD at 7, 300 bytes",
        &stored.encode(),
        "011501150716012c",
    );
    assert_eq!(StoredScript::decode(&stored.encode()).unwrap(), stored);
    let key = layout.script_by_time_key(7, "ab").into();
    assert_eq!(layout.read_script_by_time(&key).unwrap(), "ab");
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
fn rows_of_libraries() {
    let layout = layout();
    golden(
        "version of the libraries",
        &layout.libraries_version_key(),
        "0271756f696e00150b1504",
    );
    golden(
        "library `lib`",
        &layout.library_key("lib"),
        "0271756f696e00150b1502026c696200",
    );
    let piece = layout.library_piece_key("lib", 1);
    golden(
        "piece 1 of library `lib`",
        &piece,
        "0271756f696e00150b1502026c6962001501",
    );
    let read = layout.read_library_key(&piece).unwrap();
    assert_eq!(read, ("lib".to_owned(), Some(1)));
    let stored = StoredLibrary {
        id: 9,
        functions_bytes: 7,
        code_bytes: 300,
    };
    golden(
        "library 9 with 7 bytes of functions and 300 of code",
        &stored.encode(),
        "011509150716012c",
    );
    assert_eq!(StoredLibrary::decode(&stored.encode()).unwrap(), stored);
    let functions = vec![
        StoredFunction {
            name: "f".to_owned(),
            description: Some(b"text".to_vec()),
            flags: 1,
        },
        StoredFunction {
            name: "g".to_owned(),
            description: None,
            flags: 0,
        },
    ];
    let mut bytes = Vec::new();
    for function in &functions {
        function.encode_into(&mut bytes);
    }
    golden(
        "functions `f`, which is described and only reads, and `g`",
        &bytes,
        "02660001746578740015010267000014",
    );
    assert_eq!(StoredFunction::decode_all(&bytes).unwrap(), functions);
}

#[test]
fn rows_of_streams() {
    let layout = layout();
    let id = StreamId {
        ms: 1_700_000_000_000,
        seq: 2,
    };
    golden(
        "entry 1700000000000-2 of a stream",
        &layout.stream_entry_key(DATA, id),
        "0271756f696e001502150116012c150f1a018bcfe568001502",
    );
    let fields = [Bytes::from_static(b"job"), Bytes::from_static(b"work")];
    golden(
        "entry of a stream: `job` = `work`",
        &StoredValue::encode_plain(&stream::encode_stream_fields(&fields)),
        "00036a6f6204776f726b",
    );
    golden(
        "head of a stream",
        &layout.stream_head_key(DATA),
        "0271756f696e001502150116012c151014",
    );
    let head = StreamHead { last: id, added: 7 };
    golden(
        "head: last id 1700000000000-2, 7 entries added",
        &head.encode(),
        "010000018bcfe5680000000000000000020000000000000007",
    );
    golden(
        "greatest deleted id of a stream",
        &layout.stream_deleted_key(DATA),
        "0271756f696e001502150116012c15101501",
    );
    golden(
        "greatest deleted id 1700000000000-2",
        &stream::encode_stream_deleted(id),
        "010000018bcfe568000000000000000002",
    );
}

#[test]
fn rows_of_consumer_groups() {
    let layout = layout();
    let id = StreamId {
        ms: 1_700_000_000_000,
        seq: 2,
    };
    let group = Id {
        instance: 7,
        sequence: 9,
    };
    let consumer = Id {
        instance: 7,
        sequence: 10,
    };
    golden(
        "consumer group `gpu`",
        &layout.stream_group_key(DATA, b"gpu"),
        "0271756f696e001502150116012c15110167707500",
    );
    let stored = StreamGroup {
        id: group,
        last: id,
        entries_read: Some(7),
        long_name: None,
        policy: None,
    };
    golden(
        "group (7, 9) that has read 7 entries up to 1700000000000-2",
        &stored.encode(),
        "01150715091a018bcfe568001502150700",
    );
    let with_policy = StreamGroup {
        policy: Some(StreamPolicy {
            min_idle_ms: 30_000,
            max_tries: Some(5),
            dead_letter: Some(Bytes::from_static(b"dead")),
        }),
        ..stored
    };
    golden(
        "that group with MINIDLE 30000, MAXTRIES 5 and DEADLETTER `dead`",
        &with_policy.encode(),
        "02150715091a018bcfe5680015021507001675301505016465616400",
    );
    golden(
        "pending entry 1700000000000-2 of group (7, 9)",
        &layout.stream_pending_key(DATA, group, id),
        "0271756f696e001502150116012c1512150715091a018bcfe568001502",
    );
    let pending = StreamPending {
        consumer: Some(consumer),
        delivered_at_ms: 1_700_000_000_001,
        deliveries: 3,
    };
    golden(
        "pending at consumer (7, 10) since 1700000000001, delivered 3 times",
        &pending.encode(),
        "011507150a1a018bcfe568011503",
    );
    let released = StreamPending {
        consumer: None,
        delivered_at_ms: 0,
        ..pending
    };
    golden(
        "pending and released by XNACK, delivered 3 times",
        &released.encode(),
        "010000141503",
    );
    golden(
        "that entry by its delivery at 1700000000001",
        &layout.stream_idle_key(DATA, group, 1_700_000_000_001, id),
        "0271756f696e001502150116012c1516150715091a018bcfe568011a018bcfe568001502",
    );
    golden(
        "that entry among those of consumer (7, 10)",
        &layout.stream_consumer_pending_key(DATA, group, consumer, id),
        "0271756f696e001502150116012c1513150715091507150a1a018bcfe568001502",
    );
    golden(
        "consumer `card` of group (7, 9)",
        &layout.stream_consumer_key(DATA, group, b"card"),
        "0271756f696e001502150116012c151415071509016361726400",
    );
    let stored = StreamConsumer {
        id: consumer,
        seen_at_ms: 1_700_000_000_001,
        active_at_ms: None,
        long_name: None,
    };
    golden(
        "consumer (7, 10), seen at 1700000000001, never active",
        &stored.encode(),
        "011507150a1a018bcfe568010000",
    );
    golden(
        "counter of pending entries of group (7, 9)",
        &layout.stream_pending_count_key(DATA, group, None),
        "0271756f696e001502150116012c151515071509",
    );
    golden(
        "counter of those of consumer (7, 10)",
        &layout.stream_pending_count_key(DATA, group, Some(consumer)),
        "0271756f696e001502150116012c1515150715091507150a",
    );
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
fn rows_of_trackers() {
    let layout = layout();
    let key = layout.tracker_key(300);
    golden("mark of instance 300", &key, "0271756f696e001508150216012c");
    assert_eq!(layout.read_tracker_key(&key).unwrap(), 300);
    let range = layout.trackers();
    assert!(range.begin < key && key < range.end);
    golden(
        "sign of life of instance 300",
        &layout.tracker_beat_key(300),
        "0271756f696e001508150316012c",
    );
}

#[test]
fn rows_of_priority_queues() {
    let layout = layout();
    let key = |priority, count, random, sequence| {
        let place = QueuePlace {
            priority,
            count,
            random,
            sequence,
        };
        layout.queue_key(DATA, &place)
    };
    golden(
        "priority 1, count 2, random 7",
        &key(Priority::integer(1), 2, 7, Some(0)),
        "0271756f696e001502150116012c150421bff000000000000014150215071414",
    );
    golden(
        "priority 1.0, count 2, random 7",
        &key(Priority::double(1.0).unwrap(), 2, 7, Some(0)),
        "0271756f696e001502150116012c150421bff00000000000001415021507141501",
    );
    golden(
        "priority −0.5, count 0, random 0, sequence 3",
        &key(Priority::double(-0.5).unwrap(), 0, 0, Some(3)),
        "0271756f696e001502150116012c150421401fffffffffffff141414150314",
    );
    golden(
        "priority 2^53 + 1, count 0, random 7",
        &key(Priority::integer((1 << 53) + 1), 0, 7, Some(0)),
        "0271756f696e001502150116012c150421c34000000000000015011415071414",
    );
    golden(
        "priority 1, count 2, random 7, before layout 6",
        &key(Priority::integer(1), 2, 7, None),
        "0271756f696e001502150116012c150421bff00000000000001415021507",
    );
    golden(
        "priority 1.0, count 2, random 7, before layout 6",
        &key(Priority::double(1.0).unwrap(), 2, 7, None),
        "0271756f696e001502150116012c150421bff000000000000014150215071501",
    );
    golden(
        "metadata: priority queue, data (1, 300)",
        &Meta {
            value_type: ValueType::PriorityQueue,
            data: DATA,
            expire_at_ms: None,
            long_name: None,
            body: None,
            rank_levels: 0,
        }
        .encode(),
        "011503150116012c0000",
    );
}

#[test]
fn rows_of_task_queues() {
    let layout = layout();
    let place = TaskPlace {
        priority: 1.5,
        index: 300,
        random: 7,
    };
    let encoded = place.encode();
    let mut order_key = layout.task_order_prefix(DATA, 2);
    order_key.extend_from_slice(&encoded);
    golden(
        "task of class 2 at (1.5, 300, 7) in the order",
        &order_key,
        "0271756f696e001502150116012c1508150221bff800000000000016012c1507",
    );
    golden(
        "task `t1` that needs 2 and 0.5, in the order",
        &OrderRow::encode(&[2.0, 0.5], b"t1"),
        "40000000000000003fe00000000000007431",
    );
    let level = layout.task_nodes_prefix(DATA, 2, 1);
    golden(
        "node of level 1 at that place, minimum of the first resource",
        &layout.task_minimum_key(&level, &encoded, 0),
        "0271756f696e001502150116012c15091502150121bff800000000000016012c15071501",
    );
    golden(
        "mark of that node",
        &layout.task_mark_key(&level, &encoded),
        "0271756f696e001502150116012c15091502150121bff800000000000016012c15071509",
    );
    let row = TaskRow {
        state: TaskState::Leased,
        place,
        class: 2,
        mask: 0b101,
        amounts: vec![2.0, 0.5],
        tries: 1,
        tries_max: 3,
        at_ms: 1_700_000_000_000,
        token: 9,
        payload: StoredValue::encode_plain(b"work").into(),
    };
    golden(
        "task `t1`",
        &layout.task_key(DATA, b"t1"),
        "0271756f696e001502150116012c150a01743100",
    );
    golden(
        "task on lease with payload `work`",
        &row.encode(),
        "01150121bff800000000000016012c150715021505150115031a018bcfe56800150921c00000000000000021bfe000000000000000776f726b",
    );
    assert_eq!(TaskRow::decode(&row.encode().into()).unwrap(), row);
    golden(
        "lease of that task",
        &layout.task_due_key(DATA, row.at_ms, &place),
        "0271756f696e001502150116012c150b1a018bcfe5680016012c1507",
    );
    golden(
        "that task when dead",
        &layout.task_dead_key(DATA, row.at_ms, &place),
        "0271756f696e001502150116012c150c1a018bcfe5680016012c1507",
    );
    golden(
        "registry of a task queue",
        &layout.task_registry_key(DATA),
        "0271756f696e001502150116012c150d14",
    );
    let registry = TaskRegistry {
        resources: vec![Bytes::from_static(b"gb"), Bytes::from_static(b"cards")],
        classes: vec![
            TaskClass {
                mask: 1,
                octaves: Vec::new(),
            },
            TaskClass {
                mask: 3,
                octaves: vec![1024, 1022],
            },
        ],
    };
    golden(
        "registry of `gb` and `cards` with two classes",
        &registry.encode(),
        "0115020167620001636172647300150114150315021604001603fe",
    );
    let again = TaskRegistry::decode(Some(&registry.encode().into()));
    assert_eq!(again.unwrap(), registry);
    golden(
        "counter of leased tasks",
        &layout.task_counter_key(DATA, TaskCounter::Leased),
        "0271756f696e001502150116012c150d1502",
    );
    golden(
        "untended place of class 2",
        &layout.task_maintenance_key(DATA, 2, &encoded),
        "0271756f696e001502150116012c150e150221bff800000000000016012c1507",
    );
    let name = KeyName::new(&Bytes::from_static(b"jobs"));
    golden(
        "alarm of `jobs` at 1700000000000",
        &layout.timer_key(1_700_000_000_000, NAMESPACE, &name),
        "0271756f696e0015091a018bcfe568001415031ad97cb6cc6471016a6f627300",
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
            body: None,
            rank_levels: 0,
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
        let _ = layout.read_member_key(DATA, &bytes);
        let _ = Meta::decode(&Bytes::from(bytes.clone()));
        let _ = MemberEntry::decode(&bytes);
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
