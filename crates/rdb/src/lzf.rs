//! LZF, the compression of long strings in RDB files.

use super::DumpError;
use quoin_base::limits::REQUEST_BULK_BYTES_MAX;

/// Bytes of one string that RESTORE unpacks: the longest element, with its framing.
const STRING_BYTES_MAX: usize = REQUEST_BULK_BYTES_MAX + 1024;
/// Bytes that RESTORE reserves for a packed string's claimed length before they are there.
const RESERVE_BYTES_MAX: usize = 64 * 1024;

/// The bytes that `compressed` stands for, of which there must be `length`.
///
/// Reserves little in advance: a few bytes can claim any length.
pub(super) fn decompress(compressed: &[u8], length: u64) -> Result<Vec<u8>, DumpError> {
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= STRING_BYTES_MAX)
        .ok_or(DumpError::Format)?;
    let mut output = Vec::with_capacity(length.min(RESERVE_BYTES_MAX));
    let mut input = compressed;
    while let [control, rest @ ..] = input {
        let control = usize::from(*control);
        input = if control < 32 {
            // A run of bytes as they are.
            let (run, rest) = rest
                .split_at_checked(control + 1)
                .ok_or(DumpError::Format)?;
            if run.len() > length - output.len() {
                return Err(DumpError::Format);
            }
            output.extend_from_slice(run);
            rest
        } else {
            // A copy of what has gone before.
            let (count, distance_low, rest) = match (control >> 5, rest) {
                (7, [more, low, rest @ ..]) => (9 + usize::from(*more), low, rest),
                (short, [low, rest @ ..]) if short < 7 => (2 + short, low, rest),
                _ => return Err(DumpError::Format),
            };
            let distance = ((control & 0x1f) << 8) + usize::from(*distance_low) + 1;
            if count > length - output.len() {
                return Err(DumpError::Format);
            }
            copy_back(&mut output, distance, count)?;
            rest
        };
    }
    if output.len() == length {
        Ok(output)
    } else {
        Err(DumpError::Format)
    }
}

/// Repeats `count` bytes that begin `distance` before the end; they may reach into what they
/// themselves add.
fn copy_back(output: &mut Vec<u8>, distance: usize, count: usize) -> Result<(), DumpError> {
    let start = output
        .len()
        .checked_sub(distance)
        .ok_or(DumpError::Format)?;
    let mut left = count;
    while left > 0 {
        let step = left.min(output.len() - start);
        output.extend_from_within(start..start + step);
        left -= step;
    }
    Ok(())
}
