//! Priority queues and task queues.

use super::*;

const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn task(id: &str, index: i64) -> DumpedTask {
    DumpedTask {
        id: Bytes::copy_from_slice(id.as_bytes()),
        priority: 1.0,
        index,
        random: 0,
        mask: 0b01,
        amounts: vec![2.0],
        tries: 1,
        tries_max: 3,
        state: DumpedState::Ready,
        worker: None,
        reason: None,
        expires_ms: None,
        progress: None,
        group: None,
        is_awaited: false,
        traceparent: None,
        payload: "payload".into(),
    }
}

fn token(name: &str) -> DumpedKept {
    DumpedKept {
        kind: DumpedKeptKind::Unique,
        name: Bytes::copy_from_slice(name.as_bytes()),
        until_ms: 7,
        value: "t1".into(),
    }
}

fn resources() -> Vec<Bytes> {
    vec!["gb".into(), "cpu".into()]
}

fn read(payload: &Bytes) -> Result<Vec<DumpedTask>, DumpError> {
    let items = TaskQueueReader::new(open(payload)?)?;
    let tasks = items.map(|item| match item? {
        DumpedItem::Task(task) => Ok(task),
        DumpedItem::Kept(kept) => panic!("{kept:?}"),
    });
    tasks.collect()
}

fn written(added: i64, resources: &[Bytes], tasks: &[DumpedTask]) -> Bytes {
    let mut writer = TaskQueueWriter::new(added, resources, &DumpedOptions::default());
    tasks.iter().for_each(|task| writer.push(task));
    writer.finish()
}

#[test]
fn a_task_queue_is_read_as_it_was_written() {
    let states = [
        DumpedState::Ready,
        DumpedState::Leased {
            until_ms: 5,
            token: u64::MAX,
        },
        DumpedState::Delayed { until_ms: 1 << 53 },
        DumpedState::Dead { since_ms: 0 },
        DumpedState::Waiting {
            at_ms: 7,
            awaited: vec!["a".into(), vec![b'b'; 512].into()],
        },
    ];
    let tasks: Vec<_> = (0..)
        .zip(states)
        .map(|(number, state)| DumpedTask {
            state,
            random: -number,
            worker: (number % 3 > 0).then(|| "w".into()),
            reason: (number % 2 > 0).then(|| Bytes::from(vec![b'r'; 1_024])),
            expires_ms: (number > 1).then_some(number),
            progress: (number % 2 > 0).then(|| "half".into()),
            is_awaited: number > 2,
            traceparent: (number > 3).then(|| TRACEPARENT.into()),
            group: (number % 2 == 0).then(|| Bytes::from(vec![b'g'; 256])),
            ..task(&format!("t{number}"), number)
        })
        .collect();
    let payload = written(5, &resources(), &tasks);
    assert_eq!(read(&payload), Ok(tasks));
    assert_eq!(open(&payload).unwrap().own_type(), Some(OwnType::TaskQueue));
}

#[test]
fn a_malformed_traceparent_is_refused() {
    let of = |text: &str| DumpedTask {
        traceparent: Some(Bytes::copy_from_slice(text.as_bytes())),
        ..task("t", 0)
    };
    for text in ["", &TRACEPARENT[1..], &TRACEPARENT.to_uppercase()] {
        let payload = written(1, &resources(), &[of(text)]);
        assert_eq!(read(&payload), Err(DumpError::Format), "{text}");
    }
}

#[test]
fn options_are_read_as_they_were_written() {
    let paused = DumpedOptions {
        is_paused: true,
        ..DumpedOptions::default()
    };
    let all = DumpedOptions {
        numbers: vec![(2, 3), (9, 1)],
        dead_letter: Some("dead".into()),
        ..paused.clone()
    };
    for options in [DumpedOptions::default(), paused.clone(), all] {
        let mut writer = TaskQueueWriter::new(1, &resources(), &options);
        writer.push(&task("a", 0));
        let reader = TaskQueueReader::new(open(&writer.finish()).unwrap()).unwrap();
        assert_eq!(*reader.options(), options);
        let read: Result<Vec<_>, _> = reader.collect();
        assert_eq!(read, Ok(vec![DumpedItem::Task(task("a", 0))]));
    }
    // Two options, an unknown one, and an announcement without options.
    let whole = TaskQueueWriter::new(0, &[], &paused).finish();
    let value = &whole[..whole.len() - 10];
    let head = &value[..value.len() - 5];
    for parts in [&[2, 2, 2, 1, 2, 1, 0][..], &[2, 1, 2, 9, 0], &[2, 1, 0]] {
        let payload = sealed(10, &[head, parts].concat());
        let refused = TaskQueueReader::new(open(&payload.into()).unwrap());
        assert_eq!(refused.map(drop), Err(DumpError::Format), "{parts:?}");
    }
}

#[test]
fn what_no_task_queue_has_is_refused() {
    let sound = || task("a", 0);
    type Change = fn(&mut DumpedTask);
    let changes: [(&str, Change); 21] = [
        ("no id", |task| task.id = Bytes::new()),
        ("a long id", |task| task.id = vec![b'i'; 513].into()),
        ("an option's name", |task| task.id = "Token".into()),
        ("another option's name", |task| task.id = "all".into()),
        ("NaN", |task| task.priority = f64::NAN),
        ("a late index", |task| task.index = 9),
        ("an unknown resource", |task| task.mask = 0b100),
        ("no amount", |task| task.amounts[0] = 0.0),
        ("less than nothing", |task| task.amounts[0] = -1.0),
        ("an amount without end", |task| {
            task.amounts[0] = f64::INFINITY
        }),
        ("NaN needed", |task| task.amounts[0] = f64::NAN),
        ("too few amounts", |task| task.amounts.clear()),
        ("a late time", |task| {
            task.state = DumpedState::Dead {
                since_ms: (1 << 53) + 1,
            };
        }),
        ("a long name of a worker", |task| {
            task.worker = Some(vec![b'w'; 257].into());
        }),
        ("a long name of a group", |task| {
            task.group = Some(vec![b'g'; 257].into());
        }),
        ("an empty name of a group", |task| {
            task.group = Some(Bytes::new());
        }),
        ("a long reason", |task| {
            task.reason = Some(vec![b'r'; 1_025].into());
        }),
        ("a wait for nothing", |task| {
            task.state = DumpedState::Waiting {
                at_ms: 1,
                awaited: Vec::new(),
            };
        }),
        ("a wait for the same twice", |task| {
            task.state = DumpedState::Waiting {
                at_ms: 1,
                awaited: vec!["a".into(), "a".into()],
            };
        }),
        ("a wait for too many", |task| {
            let awaited = (0..1_001).map(|number| format!("{number:04}").into());
            task.state = DumpedState::Waiting {
                at_ms: 1,
                awaited: awaited.collect(),
            };
        }),
        ("no token", |task| {
            task.state = DumpedState::Leased {
                until_ms: 1,
                token: 0,
            };
        }),
    ];
    assert!(read(&written(9, &resources(), &[sound()])).is_ok());
    for (what, change) in changes {
        let mut task = sound();
        change(&mut task);
        let payload = written(9, &resources(), &[task]);
        assert_eq!(read(&payload), Err(DumpError::Format), "{what}");
    }
    for (what, tasks) in [
        ("an id twice", [task("a", 0), task("a", 1)]),
        ("ids in another order", [task("b", 0), task("a", 1)]),
        ("a place twice", [task("a", 0), task("b", 0)]),
    ] {
        let payload = written(9, &resources(), &tasks);
        assert_eq!(read(&payload), Err(DumpError::Format), "{what}");
    }
    let nine: Vec<Bytes> = (0..9).map(|number| format!("r{number}").into()).collect();
    for (what, names) in [
        ("too many resources", nine),
        ("a resource twice", vec!["gb".into(), "gb".into()]),
        ("a resource without a name", vec![Bytes::new()]),
        ("a long name", vec![vec![b'r'; 65].into()]),
        ("an option of TASK.TAKE", vec!["gb".into(), "Lease".into()]),
    ] {
        let payload = written(9, &names, &[sound()]);
        assert_eq!(read(&payload), Err(DumpError::Format), "{what}");
    }
}

#[test]
fn tokens_results_and_schedules_follow_the_tasks() {
    let result = DumpedKept {
        kind: DumpedKeptKind::Result,
        value: vec![b'r'; 65_536].into(),
        ..token("a")
    };
    let schedule = DumpedKept {
        kind: DumpedKeptKind::Schedule,
        name: vec![b's'; 256].into(),
        until_ms: 0,
        value: vec![b'v'; 70_000].into(),
    };
    let kept = [token("a"), token("b"), result, schedule.clone()];
    let mut writer = TaskQueueWriter::new(1, &resources(), &DumpedOptions::default());
    writer.push(&task("a", 0));
    kept.iter().for_each(|kept| writer.push_kept(kept));
    let whole = writer.finish();
    let items: Result<Vec<_>, _> = TaskQueueReader::new(open(&whole).unwrap())
        .unwrap()
        .collect();
    let mut expected = vec![DumpedItem::Task(task("a", 0))];
    expected.extend(kept.into_iter().map(DumpedItem::Kept));
    assert_eq!(items, Ok(expected));
    assert_eq!(
        Chunks::new(open(&whole).unwrap()).unwrap().count_left(),
        Ok(1)
    );
    type Change = fn(&mut DumpedKept);
    let changes: [Change; 4] = [
        |kept| kept.name = Bytes::new(),
        |kept| kept.name = vec![b'n'; 513].into(),
        |kept| kept.value = vec![b'v'; 513].into(),
        |kept| kept.until_ms = (1 << 53) + 1,
    ];
    let refused = |write: &dyn Fn(&mut TaskQueueWriter)| {
        let mut writer = TaskQueueWriter::new(1, &resources(), &DumpedOptions::default());
        write(&mut writer);
        let reader = TaskQueueReader::new(open(&writer.finish()).unwrap()).unwrap();
        let items: Result<Vec<_>, _> = reader.collect();
        assert_eq!(items, Err(DumpError::Format));
    };
    for change in changes {
        let mut kept = token("a");
        change(&mut kept);
        refused(&|writer| writer.push_kept(&kept));
    }
    let changes: [Change; 2] = [
        |kept| kept.name = vec![b's'; 257].into(),
        |kept| kept.value = vec![b'v'; 70_001].into(),
    ];
    for change in changes {
        let mut kept = schedule.clone();
        change(&mut kept);
        refused(&|writer| writer.push_kept(&kept));
    }
    for names in [["a", "a"], ["b", "a"]] {
        refused(&|writer| names.iter().for_each(|name| writer.push_kept(&token(name))));
    }
    refused(&|writer| {
        writer.push_kept(&token("a"));
        writer.push(&task("a", 0));
    });
}

#[test]
fn a_queue_that_was_given_too_many_tasks_is_refused() {
    const MOST: i64 = 1 << 53;
    assert!(read(&written(MOST, &resources(), &[task("a", MOST - 1)])).is_ok());
    for (added, index) in [(MOST + 1, 0), (i64::MAX, i64::MAX - 1), (MOST, MOST)] {
        let payload = written(added, &resources(), &[task("a", index)]);
        assert_eq!(read(&payload), Err(DumpError::Format), "{added} {index}");
    }
}

#[test]
fn what_no_priority_queue_has_is_refused() {
    let mut writer = PriorityQueueWriter::new();
    writer.push(DumpedPriority::Double(f64::NAN), b"a");
    let payload = open(&writer.finish()).unwrap();
    let read: Result<Vec<_>, _> = PriorityQueueReader::new(payload).unwrap().collect();
    assert_eq!(read, Err(DumpError::Format));
    // A value before any priority, and an unknown part.
    let empty = PriorityQueueWriter::new().finish();
    let head = &empty[..empty.len() - 11];
    for parts in [&[5, 1, b'a', 0][..], &[9, 0], &[3, 0, 0, 0, 0, 0], &[1]] {
        let payload = sealed(10, &[head, parts].concat());
        let payload = open(&payload.into()).unwrap();
        let read: Result<Vec<_>, _> = PriorityQueueReader::new(payload).unwrap().collect();
        assert_eq!(read, Err(DumpError::Format), "{parts:?}");
    }
}

#[test]
fn chunks_hold_together_what_the_whole_holds() {
    let tasks: Vec<_> = (0..100)
        .map(|number| task(&format!("t{number:03}"), number))
        .collect();
    let whole = written(100, &resources(), &tasks);
    let mut chunks = Chunks::new(open(&whole).unwrap()).unwrap();
    assert_eq!(chunks.clone().count_left(), Ok(100));
    let mut all = Vec::new();
    while let Some(chunk) = chunks.next_chunk(200, 7).unwrap() {
        let some = read(&chunk).unwrap();
        assert!((1..=7).contains(&some.len()));
        all.extend(some);
    }
    assert_eq!(all, tasks);
}

#[test]
fn a_file_has_such_values_and_passes_over_those_of_modules() {
    let mut writer = PriorityQueueWriter::new();
    writer.push(DumpedPriority::Integer(1), b"value");
    let payload = writer.finish();
    let value = &payload[1..payload.len() - 10];
    let mut file = [b"REDIS0010".as_slice(), &[7, 1, b'q'], value].concat();
    let mut other = value.to_vec();
    other[1] ^= 1;
    file.extend([&[7, 1, b'm'], other.as_slice(), &[255]].concat());
    file.extend(crc64(&file).to_le_bytes());
    let mut reader = RdbReader::begin(file.as_slice(), 1_000).unwrap();
    let mut values = Vec::new();
    while let Some(RdbItem::Key(key)) = reader.next_item().unwrap() {
        values.push(key.value);
    }
    assert_eq!(values, [RdbValue::Payload(payload), RdbValue::Module]);
}
