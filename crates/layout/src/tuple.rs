//! Reading keys and values one tuple element at a time.

use foundationdb_tuple::{TupleDepth, TupleUnpack};

use quoin_base::decode_error::DecodeError;

pub(crate) fn corrupt<T>(what: &'static str) -> Result<T, DecodeError> {
    Err(DecodeError(what))
}

/// What of a key has not been read yet. (The tuple crate only unpacks whole tuples; an element
/// that takes all the rest lets keys be read one element at a time.)
struct Rest<'k>(&'k [u8]);

impl<'k> TupleUnpack<'k> for Rest<'k> {
    fn unpack(
        input: &'k [u8],
        _depth: TupleDepth,
    ) -> foundationdb_tuple::PackResult<(&'k [u8], Self)> {
        Ok((&[], Rest(input)))
    }
}

/// Takes one tuple element off the front of `input`.
pub(crate) fn take<'k, T: TupleUnpack<'k>>(
    input: &mut &'k [u8],
    what: &'static str,
) -> Result<T, DecodeError> {
    match foundationdb_tuple::unpack::<(T, Rest<'k>)>(input) {
        Ok((element, Rest(rest))) => {
            *input = rest;
            Ok(element)
        }
        Err(_) => corrupt(what),
    }
}

/// FoundationDB's type code of nil.
const NIL_CODE: u8 = 0x00;

/// Whether the next tuple element of `input` is nil (which marks a digest in place of a name).
pub(crate) fn next_is_nil(input: &[u8]) -> bool {
    input.first() == Some(&NIL_CODE)
}
