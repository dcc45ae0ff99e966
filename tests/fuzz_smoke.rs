//! The bodies of the fuzz targets, run for a short while on inputs from fixed seeds, so that they
//! are exercised without cargo-fuzz. A failure here names its seed, and `run` repeats it.
#![allow(clippy::panic, clippy::expect_used)]

#[path = "../fuzz/bodies/dump_decoding.rs"]
mod dump_decoding;
#[path = "../fuzz/bodies/layout_decoding.rs"]
mod layout_decoding;
#[path = "../fuzz/bodies/request_parser.rs"]
mod request_parser;
#[path = "../fuzz/bodies/scripts.rs"]
mod scripts;

use quoin_rdb::testing as payloads;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// Inputs for each target; a second or two together in a debug build.
const INPUTS_PER_TARGET: u64 = 4_000;

/// Pieces that get past the first checks of the parser.
const REQUEST_PIECES: &[&[u8]] = &[
    b"*1\r\n",
    b"*2\r\n",
    b"*3\r\n",
    b"*0\r\n",
    b"*-1\r\n",
    b"*11\r\n",
    b"$0\r\n\r\n",
    b"$1\r\na\r\n",
    b"$4\r\nPING\r\n",
    b"$5\r\nLPUSH\r\n",
    b"$16385\r\n",
    b"$536870912\r\n",
    b"PING\r\n",
    b"set \"a\\x41\" 'b'\n",
    b"get \"a\r\n",
    b"\r\n",
    b"\0",
    b"\r",
    b"$",
    b"*",
];

#[test]
fn request_parser_survives_random_and_mutated_requests() {
    for seed in 0..INPUTS_PER_TARGET {
        let mut random = StdRng::seed_from_u64(seed);
        let mut data: Vec<u8> = random.random::<u64>().to_le_bytes().to_vec();
        for _ in 0..random.random_range(0..20) {
            match random.random_range(0..10) {
                0 => {
                    let length = random.random_range(0..200);
                    data.extend((0..length).map(|_| random.random::<u8>()));
                }
                1 => {
                    let length = random.random_range(900..70_000);
                    data.extend(format!("*1\r\n${length}\r\n").bytes());
                    data.extend(std::iter::repeat_n(b'v', length));
                    data.extend(b"\r\n");
                }
                _ => data.extend(
                    REQUEST_PIECES
                        .choose(&mut random)
                        .copied()
                        .unwrap_or_default(),
                ),
            }
        }
        mutate(&mut data, &mut random);
        name_seed_on_panic(seed, || request_parser::run(&data));
    }
}

/// Pieces of FoundationDB's tuple encoding: integers, byte strings, nil, doubles, and damage.
const TUPLE_PIECES: &[&[u8]] = &[
    b"\x14",
    b"\x15\x01",
    b"\x15\x02",
    b"\x15\x03",
    b"\x15\x04",
    b"\x13\xfe",
    b"\x16\x01\x2c",
    b"\x1a\xd9\x7c\xb6\xcc\x64\x71",
    b"\x1c\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x0c\x00\x00\x00\x00\x00\x00\x00\x00",
    b"\x01jobs\x00",
    b"\x01a\x00\xffb\x00",
    b"\x01",
    b"\x00",
    b"\x21\xbf\xf8\x00\x00\x00\x00\x00\x00",
    b"\x21\xff\xf8\x00\x00\x00\x00\x00\x00",
    b"\x05\x15\x01\x00",
    b"\xff",
];

#[test]
fn layout_decoding_survives_random_and_mutated_rows() {
    for seed in 0..INPUTS_PER_TARGET * 5 {
        let mut random = StdRng::seed_from_u64(seed);
        // A format byte as in values, or a space as in keys.
        let mut data: Vec<u8> = vec![random.random_range(0..3)];
        if random.random() {
            data.clear();
        }
        for _ in 0..random.random_range(0..10) {
            if random.random_range(0..8) == 0 {
                let length = random.random_range(0..60);
                data.extend((0..length).map(|_| random.random::<u8>()));
            } else {
                data.extend(
                    TUPLE_PIECES
                        .choose(&mut random)
                        .copied()
                        .unwrap_or_default(),
                );
            }
        }
        name_seed_on_panic(seed, || layout_decoding::run(&data));
    }
}

#[test]
fn dump_decoding_survives_random_and_mutated_payloads() {
    for seed in 0..INPUTS_PER_TARGET / 2 {
        let mut random = StdRng::seed_from_u64(seed);
        let count = random.random_range(0..12);
        let elements: Vec<Vec<u8>> = (0..count)
            .map(|_| match random.random_range(0..3) {
                0 => random.random::<i64>().to_string().into_bytes(),
                1 => {
                    let length = random.random_range(0..70);
                    (0..length).map(|_| random.random::<u8>()).collect()
                }
                _ => vec![b'x'; random.random_range(0..300)],
            })
            .collect();
        let members: Vec<(Vec<u8>, f64)> = elements.iter().map(|one| (one.clone(), 2.5)).collect();
        let mut forms = payloads::old_lists(&elements);
        forms.extend(payloads::old_sets(&members));
        let fields = elements.iter().map(|one| (one.clone(), one.clone()));
        forms.extend(payloads::hashes(&fields.collect::<Vec<_>>()));
        forms.extend(payloads::sets(&elements));
        forms.extend(payloads::number_sets(&[-7, i64::from(count)]));
        let mut data = match forms.choose(&mut random) {
            // Without the footer, which the target adds.
            Some((_, payload)) => payload.split_at(payload.len() - 10).0.to_vec(),
            None => Vec::new(),
        };
        if random.random_range(0..4) == 0 {
            let written = elements
                .iter()
                .fold(quoin_rdb::ListWriter::new(), |mut list, one| {
                    list.push(one);
                    list
                });
            data = written.finish().to_vec();
            data.truncate(data.len() - 10);
        }
        if random.random_range(0..3) == 0 {
            data = own_value(&elements, &mut random);
            data.truncate(data.len() - 10);
        }
        if data.len() >= 8 {
            mutate(&mut data, &mut random);
        }
        // Structure is mostly in front.
        for _ in 0..random.random_range(0..3) {
            let front = data.len().min(20);
            if let Some(byte) = data.get_mut(random.random_range(0..=front)) {
                *byte = random.random();
            }
        }
        name_seed_on_panic(seed, || dump_decoding::run(&data));
    }
}

/// A priority queue or a task queue with these values.
fn own_value(values: &[Vec<u8>], random: &mut StdRng) -> Vec<u8> {
    use quoin_rdb::{
        DumpedKept, DumpedKeptKind, DumpedOptions, DumpedPriority, DumpedState, DumpedTask,
        PriorityQueueWriter, TaskQueueWriter,
    };
    if random.random() {
        let mut writer = PriorityQueueWriter::new();
        for value in values {
            let priority = match random.random() {
                true => DumpedPriority::Integer(random.random_range(-3..3)),
                false => DumpedPriority::Double(random.random_range(-2.0..2.0)),
            };
            writer.push(priority, value);
        }
        return writer.finish().to_vec();
    }
    let options = DumpedOptions {
        is_paused: random.random(),
        numbers: vec![(2, 3); random.random_range(0..2)],
        dead_letter: random.random::<bool>().then(|| "dead".into()),
    };
    let resources = ["gb".into(), "cpu".into()];
    let mut writer = TaskQueueWriter::new(values.len() as i64, &resources, &options);
    for (number, value) in values.iter().enumerate() {
        let mask = random.random_range(0..4_u8);
        writer.push(&DumpedTask {
            id: format!("t{number:02}").into(),
            priority: random.random_range(-2.0..2.0),
            index: number as i64,
            random: random.random(),
            mask,
            amounts: vec![1.5; mask.count_ones() as usize],
            tries: random.random_range(0..3),
            tries_max: 3,
            worker: random.random::<bool>().then(|| "w".into()),
            reason: random.random::<bool>().then(|| "why".into()),
            expires_ms: random.random::<bool>().then_some(1),
            progress: random.random::<bool>().then(|| "half".into()),
            group: random.random::<bool>().then(|| "g".into()),
            is_awaited: random.random::<bool>(),
            traceparent: random
                .random::<bool>()
                .then(|| "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into()),
            state: match random.random_range(0..4) {
                0 => DumpedState::Ready,
                1 => DumpedState::Leased {
                    until_ms: 1,
                    token: 7,
                },
                2 => DumpedState::Delayed { until_ms: 1 },
                _ => DumpedState::Dead { since_ms: 1 },
            },
            payload: value.clone().into(),
        });
    }
    for kind in [
        DumpedKeptKind::Unique,
        DumpedKeptKind::Result,
        DumpedKeptKind::Schedule,
    ] {
        if random.random() {
            writer.push_kept(&DumpedKept {
                kind,
                name: "t".into(),
                until_ms: 1,
                value: "v".into(),
            });
        }
    }
    writer.finish().to_vec()
}

/// Pieces of scripts.
const SCRIPT_PIECES: &[&[u8]] = &[
    b"local a = ",
    b"return ",
    b"redis.call('LLEN', 'q')",
    b"redis.pcall(",
    b"function() ",
    b" end ",
    b"for i = 1, 9 do ",
    b"while true do ",
    b"pcall(",
    b"error({err='x'}) ",
    b"string.rep('x', 99)",
    b"(('x'):gsub('.', redis.call))",
    b"{1, 2, a = {}}",
    b"cjson.encode(",
    b"cmsgpack.pack(",
    b"struct.pack('i4s', ",
    b"coroutine.wrap(",
    b"setmetatable({}, {__index = redis.call})",
    b"loadstring(",
    b"string.dump(",
    b"table.sort({3, 2, 1}, ",
    b"unpack(",
    b"getmetatable('')",
    b"[[",
    b"]]",
    b"[==[",
    b")",
    b", ",
    b" .. ",
    b"[1,{\"a\":null}]",
    b"\x93\x01\xa1x\xc0",
    b"#!lua flags=no-writes\n",
];

#[test]
fn scripts_survive_random_texts() {
    for seed in 0..INPUTS_PER_TARGET / 20 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut data: Vec<u8> = b"return  ".to_vec();
        for _ in 0..random.random_range(0..12) {
            let piece = SCRIPT_PIECES.choose(&mut random);
            data.extend(piece.copied().unwrap_or_default());
        }
        if random.random_range(0..4) == 0 {
            mutate(&mut data, &mut random);
        }
        name_seed_on_panic(seed, || scripts::run(&data));
    }
}

/// Sometimes changes, doubles or drops a few bytes after the control bytes.
fn mutate(data: &mut Vec<u8>, random: &mut StdRng) {
    for _ in 0..random.random_range(0..4) {
        let position = random.random_range(8..=data.len());
        match random.random_range(0..3) {
            0 => data.truncate(position),
            1 => data.insert(position, random.random()),
            _ => {
                if let Some(byte) = data.get_mut(position) {
                    *byte = random.random();
                }
            }
        }
    }
}

fn name_seed_on_panic(seed: u64, body: impl FnOnce() + std::panic::UnwindSafe) {
    if std::panic::catch_unwind(body).is_err() {
        panic!("failed for seed {seed}");
    }
}
