//! ACL GENPASS.

use bytes::Bytes;
use rand::TryRng;
use rand::rngs::SysRng;

use super::{refusal, unknown_or_wrong_number};
use quoin_base::limits::GENERATED_PASSWORD_BITS_MAX;
use quoin_data::command::arguments::integer;
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

const DEFAULT_BITS: i64 = 256;
/// Bits of a hexadecimal digit.
const DIGIT_BITS: i64 = 4;

/// `ACL GENPASS [bits]` → hexadecimal digits, from the operating system's source for secrets.
pub(super) fn password(arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let bits = match arguments {
        [_, _] => DEFAULT_BITS,
        [_, _, bits] => integer(bits)?,
        _ => return Err(unknown_or_wrong_number(arguments)),
    };
    if !(1..=GENERATED_PASSWORD_BITS_MAX).contains(&bits) {
        return Err(refusal(format!(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a positive \
             number up to {GENERATED_PASSWORD_BITS_MAX}"
        )));
    }
    let digits = usize::try_from((bits + DIGIT_BITS - 1) / DIGIT_BITS).unwrap_or_default();
    let mut secret = vec![0; digits.div_ceil(2)];
    SysRng
        .try_fill_bytes(&mut secret)
        .map_err(|error| refusal(format!("ERR no random numbers: {error}")))?;
    let mut text: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    text.truncate(digits);
    Ok(Reply::bulk(text))
}
