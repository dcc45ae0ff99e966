//! PFSELFTEST: tests whether HyperLogLogs work on this machine.

use super::dense::{self, DENSE_BYTES, REGISTERS};
use super::{Encoding, HyperLogLog};

/// Elements to add. Redis adds a hundred times as many, and serves no client meanwhile.
const ELEMENTS: u64 = 100_000;
/// The limit of the sparse encoding: Redis's default.
const SPARSE_BYTES_MAX: usize = 3_000;
/// Most standard deviations of an estimate from the truth.
const DEVIATIONS_MAX: f64 = 6.0;

/// Tests registers and estimates with numbers made from `seed`.
///
/// # Errors
/// The first failure.
pub fn self_test(seed: u64) -> Result<(), String> {
    let mut bytes = vec![0; DENSE_BYTES];
    let mut random = seed;
    let mut expected = Vec::with_capacity(REGISTERS);
    for index in 0..REGISTERS {
        // A linear congruential generator (Knuth).
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let value = u8::try_from(random >> 58).unwrap_or(0);
        dense::raise(&mut bytes, index, value);
        expected.push(value);
    }
    for (index, (found, expected)) in dense::values(&bytes).zip(expected).enumerate() {
        if found != expected {
            return Err(format!(
                "TESTFAILED Register {index} should be {expected} but is {found}"
            ));
        }
    }
    let mut sparse = HyperLogLog::empty();
    let mut dense = HyperLogLog::empty();
    let corrupt = |_| "TESTFAILED corrupt registers".to_owned();
    dense.make_dense().map_err(corrupt)?;
    let mut checkpoint = 1;
    for number in 1..=ELEMENTS {
        let element = (number ^ seed).to_le_bytes();
        sparse.add(&element, SPARSE_BYTES_MAX).map_err(corrupt)?;
        dense.add(&element, SPARSE_BYTES_MAX).map_err(corrupt)?;
        if number == checkpoint {
            check(&mut sparse, &mut dense, number)?;
            checkpoint *= 10;
        }
    }
    Ok(())
}

fn check(sparse: &mut HyperLogLog, dense: &mut HyperLogLog, added: u64) -> Result<(), String> {
    let is_small = usize::try_from(added).is_ok_and(|added| added < SPARSE_BYTES_MAX / 2);
    if is_small && sparse.encoding() != Encoding::Sparse {
        return Err("TESTFAILED sparse encoding not used".to_owned());
    }
    let counts = (sparse.count().ok(), dense.count().ok());
    let (Some(count), true) = (counts.1, counts.0 == counts.1) else {
        return Err("TESTFAILED dense/sparse disagree".to_owned());
    };
    #[allow(clippy::cast_precision_loss)]
    let (added_float, registers) = (added as f64, REGISTERS as f64);
    let error_max = (1.04 / registers.sqrt() * DEVIATIONS_MAX * added_float).ceil();
    let error = added.abs_diff(count);
    #[allow(clippy::cast_precision_loss)]
    if error as f64 > error_max {
        return Err(format!(
            "TESTFAILED Too big error. card:{added} abserr:{error}"
        ));
    }
    Ok(())
}
