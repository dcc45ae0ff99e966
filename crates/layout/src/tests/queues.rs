//! Requests and grants of older builds, priority queues, task queues.

use super::*;

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
            inline: None,
            rank_levels: 0,
            fields_expire: false,
            is_kept: false,
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
        notes: TaskNotes::default(),
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
    let noted = TaskRow {
        notes: TaskNotes {
            worker: Some("w1".into()),
            reason: Some("no disk".into()),
            ..TaskNotes::default()
        },
        ..row.clone()
    };
    golden(
        "that task with the worker `w1` and the reason `no disk`",
        &noted.encode(),
        "02150121bff800000000000016012c150715021505150115031a018bcfe56800150921c00000000000000021bfe000000000000015021501017731001502016e6f206469736b0000776f726b",
    );
    assert_eq!(TaskRow::decode(&noted.encode().into()).unwrap(), noted);
    let aged = TaskRow {
        notes: TaskNotes {
            expires_ms: Some(1_700_000_000_000),
            progress: Some("half".into()),
            ..TaskNotes::default()
        },
        ..row.clone()
    };
    golden(
        "that task with the progress `half` and an end at 1700000000000",
        &aged.encode(),
        "02150121bff800000000000016012c150715021505150115031a018bcfe56800150921c00000000000000021bfe0000000000000150215040168616c660015031a018bcfe5680000776f726b",
    );
    assert_eq!(TaskRow::decode(&aged.encode().into()).unwrap(), aged);
    let grouped = TaskRow {
        notes: TaskNotes {
            group: Some("ada".into()),
            is_awaited: true,
            ..TaskNotes::default()
        },
        ..row.clone()
    };
    golden(
        "that task of group `ada`, for which others wait",
        &grouped.encode(),
        "02150121bff800000000000016012c150715021505150115031a018bcfe56800150921c00000000000000021bfe0000000000000150215050161646100150600776f726b",
    );
    assert_eq!(TaskRow::decode(&grouped.encode().into()).unwrap(), grouped);
    let traced = TaskRow {
        notes: TaskNotes {
            traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into()),
            ..TaskNotes::default()
        },
        ..row.clone()
    };
    golden(
        "that task with a traceparent",
        &traced.encode(),
        "02150121bff800000000000016012c150715021505150115031a018bcfe56800150921c00000000000000021bfe0000000000000150115070130302d34626639326633353737623334646136613363653932396430653065343733362d303066303637616130626139303262372d30310000776f726b",
    );
    assert_eq!(TaskRow::decode(&traced.encode().into()).unwrap(), traced);
    let taken = TaskRow {
        notes: TaskNotes {
            taken_ms: Some(1_700_000_000_001),
            ..traced.notes.clone()
        },
        ..traced.clone()
    };
    golden(
        "that task, taken at a time that its trace shows",
        &taken.encode(),
        "02150121bff800000000000016012c150715021505150115031a018bcfe56800150921c00000000000000021bfe0000000000000150215070130302d34626639326633353737623334646136613363653932396430653065343733362d303066303637616130626139303262372d30310015081a018bcfe5680100776f726b",
    );
    assert_eq!(TaskRow::decode(&taken.encode().into()).unwrap(), taken);
    let order_place = grouped.order_place();
    golden(
        "task of class 2 and group `ada` at (1.5, 300, 7) in the order",
        &layout.task_order_key(DATA, 2, &order_place),
        "0271756f696e001502150116012c15081502016164610021bff800000000000016012c1507",
    );
    let again = OrderPlace::decode(&order_place.encode());
    assert_eq!(again.unwrap(), order_place);
    let plain = row.order_place();
    assert_eq!(plain.encode(), encoded);
    assert_eq!(OrderPlace::decode(&encoded).unwrap(), plain);
    golden(
        "lease of a task of group `ada` at that place",
        &layout.task_group_lease_key(DATA, b"ada", &place),
        "0271756f696e001502150116012c1520016164610016012c1507",
    );
    golden(
        "group that had the last turn",
        &layout.task_turn_key(DATA),
        "0271756f696e001502150116012c150d1506",
    );
    for group in [None, Some(Bytes::from_static(b"ada"))] {
        let prefix = OrderPlace::group_prefix(group.as_deref());
        assert_eq!(OrderPlace::decode_group(&prefix).unwrap(), group);
    }
    let numbers = (place.index, place.random);
    golden(
        "that task when it waits",
        &layout.task_waiting_key(DATA, row.at_ms, &place),
        "0271756f696e001502150116012c15211a018bcfe5680016012c1507",
    );
    let awaited = layout.task_awaited_key(DATA, numbers, b"t0");
    golden(
        "that task waits for `t0`",
        &awaited,
        "0271756f696e001502150116012c152216012c150701743000",
    );
    let read = layout.read_task_awaited_key(DATA, &awaited).unwrap();
    assert_eq!(read, (numbers, "t0".into()));
    let dependant = layout.task_dependant_key(DATA, b"t0", numbers);
    golden(
        "that `t0` is waited for by that task",
        &dependant,
        "0271756f696e001502150116012c15230174300016012c1507",
    );
    let read = layout.read_task_dependant_key(DATA, &dependant).unwrap();
    assert_eq!(read, Some(("t0".into(), numbers)));
    let released = layout.task_released_key(DATA, b"t0");
    golden(
        "that `t0` was acknowledged",
        &released,
        "0271756f696e001502150116012c152301743000",
    );
    assert_eq!(
        layout.read_task_dependant_key(DATA, &released).unwrap(),
        None
    );
    golden(
        "end of task `t1` at 1700000000000",
        &layout.task_end_key(DATA, row.at_ms, TaskEnding::Task, b"t1"),
        "0271756f696e001502150116012c151e1a018bcfe568001401743100",
    );
    golden(
        "token `mail`",
        &layout.task_kept_key(DATA, TaskEnding::Unique, b"mail"),
        "0271756f696e001502150116012c151d1501016d61696c00",
    );
    let kept = TaskKept {
        until_ms: 1_700_000_000_000,
        value: "t1".into(),
    };
    golden(
        "that token until 1700000000000, of task `t1`",
        &kept.encode(),
        "1a018bcfe568007431",
    );
    assert_eq!(TaskKept::decode(&kept.encode().into()).unwrap(), kept);
    golden(
        "schedule `night`",
        &layout.task_schedule_key(DATA, b"night"),
        "0271756f696e001502150116012c151f016e6967687400",
    );
    golden(
        "next moment of that schedule at 1700000000000",
        &layout.task_end_key(DATA, row.at_ms, TaskEnding::Schedule, b"night"),
        "0271756f696e001502150116012c151e1a018bcfe568001503016e6967687400",
    );
    let every = TaskSchedule {
        next_ms: 1_700_000_000_000,
        last_ms: 0,
        error: Bytes::new(),
        timing: TaskTiming::Every {
            every_ms: 60_000,
            from_ms: 1_600_000_000_000,
        },
        missed: TaskMissed::Once,
        task: TaskSpec {
            priority: 1.5,
            payload: "work".into(),
            ..TaskSpec::default()
        },
    };
    golden(
        "schedule each minute of `work`",
        &every.encode(),
        "011a018bcfe56800140100141416ea601a0174876e800021bff8000000000000140000000014776f726b",
    );
    let cron = TaskSchedule {
        last_ms: 1_600_000_000_000,
        error: "FULL".into(),
        timing: TaskTiming::Cron {
            expression: "0 3 * * *".into(),
            zone: "Europe/Berlin".into(),
        },
        missed: TaskMissed::Skip,
        task: TaskSpec {
            needs: vec![("gb".into(), 2.0)],
            delay_ms: 5,
            tries_max: Some(3),
            ttl_ms: Some(60_000),
            unique: Some(TaskUnique {
                token: "mail".into(),
                window_ms: 1_000,
            }),
            ..every.task.clone()
        },
        ..every.clone()
    };
    golden(
        "schedule `0 3 * * *` in Berlin of `work`",
        &cron.encode(),
        "011a018bcfe568001a0174876e80000146554c4c001502150101302033202a202a202a00014575726f70652f4265726c696e0021bff80000000000001505150316ea60016d61696c001603e815010167620021c000000000000000776f726b",
    );
    let of_group = TaskSchedule {
        task: TaskSpec {
            group: Some("ada".into()),
            ..every.task.clone()
        },
        ..every.clone()
    };
    golden(
        "schedule each minute of `work` of group `ada`",
        &of_group.encode(),
        "021a018bcfe56800140100141416ea601a0174876e800021bff80000000000001400000000140161646100776f726b",
    );
    for schedule in [every, cron, of_group] {
        let read = TaskSchedule::decode(&schedule.encode().into());
        assert_eq!(read.unwrap(), schedule);
    }
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
        options: TaskOptions::default(),
        has_groups: false,
        has_waits: false,
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
    let mut options = TaskOptions::default();
    options.is_paused = true;
    let paused = TaskRegistry {
        options,
        ..registry.clone()
    };
    golden(
        "that registry of a paused queue",
        &paused.encode(),
        "021501150115020167620001636172647300150114150315021604001603fe",
    );
    let again = TaskRegistry::decode(Some(&paused.encode().into()));
    assert_eq!(again.unwrap(), paused);
    let mut options = TaskOptions::default();
    options.set_number(TaskNumber::LeaseMs, 60_000);
    options.set_number(TaskNumber::TriesMax, 3);
    options.dead_letter = Some("dead".into());
    let of_groups = TaskRegistry {
        has_groups: true,
        ..registry.clone()
    };
    golden(
        "that registry of a queue with groups",
        &of_groups.encode(),
        "0315011415020167620001636172647300150114150315021604001603fe",
    );
    let again = TaskRegistry::decode(Some(&of_groups.encode().into()));
    assert_eq!(again.unwrap(), of_groups);
    let with_options = TaskRegistry {
        options,
        ..registry
    };
    golden(
        "that registry with MAXTRIES 3, LEASE 60000 and DEADLETTER `dead`",
        &with_options.encode(),
        "02150315021503150616ea60150a01646561640015020167620001636172647300150114150315021604001603fe",
    );
    let again = TaskRegistry::decode(Some(&with_options.encode().into()));
    assert_eq!(again.unwrap(), with_options);
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
        "timer of `jobs` at 1700000000000",
        &layout.timer_key(Timers::Queues, 1_700_000_000_000, NAMESPACE, &name),
        "0271756f696e0015091a018bcfe568001415031ad97cb6cc6471016a6f627300",
    );
    golden(
        "timer of the hash `jobs` at 1700000000000",
        &layout.timer_key(Timers::Hashes, 1_700_000_000_000, NAMESPACE, &name),
        "0271756f696e00150e1a018bcfe568001415031ad97cb6cc6471016a6f627300",
    );
}
