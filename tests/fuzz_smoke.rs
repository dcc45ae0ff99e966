//! The bodies of the fuzz targets, run for a short while on inputs from fixed seeds, so that they
//! are exercised without cargo-fuzz. A failure here names its seed; `run` repeats it.
#![allow(clippy::panic)]

#[path = "../fuzz/bodies/request_parser.rs"]
mod request_parser;

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

// Target layout_decoding: include its body above and test it here.

/// Changes, doubles or drops a few bytes behind the control bytes, sometimes.
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
