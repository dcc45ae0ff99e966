//! How two servers prove to each other that they share a store: with a secret that it contains.
//!
//! The connecting server sends `QUOIN.LINK version nonce`. The other one replies with a nonce and
//! its own proof. Then the first sends `QUOIN.LINK version proof` and gets OK. From then on both
//! send frames.

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::session::LinkStage;
use quoin_base::random::Random;
use quoin_base::secret::{hex, is_secret};
use quoin_data::command::arguments::is_word;
use quoin_resp::reply::Reply;

/// The version of the protocol on links: the form of frames and, because commands may differ, the
/// version of Quoin. Servers of other versions run their commands themselves.
pub(crate) const VERSION: &str = concat!("1-", env!("CARGO_PKG_VERSION"));

/// The name that begins each step. Clients have no such command.
pub(super) const NAME: &str = "QUOIN.LINK";

/// Whether a request is a step of a handshake.
pub(crate) fn is_step(arguments: &[Bytes]) -> bool {
    matches!(arguments, [name, _, _] if is_word(name, NAME))
}

/// The accepting side's reply to a step, and the next stage. An error ends the connection.
pub(crate) fn answer(
    secret: &[u8],
    random: &dyn Random,
    arguments: &[Bytes],
    stage: &LinkStage,
) -> (Reply, LinkStage) {
    let refused = |line: &str| (Reply::Error(line.to_owned()), LinkStage::Unproven);
    let [_, version, word] = arguments else {
        return refused("ERR a link needs a version and a word");
    };
    if version != VERSION {
        return refused("ERR this server uses another version of links");
    }
    match stage {
        LinkStage::Asked(nonces) => {
            let [theirs, own] = nonces;
            match is_proof(secret, Side::Connecting, [theirs, own], word) {
                true => (Reply::OK, LinkStage::Proven),
                false => refused("ERR this server shares another store"),
            }
        }
        LinkStage::Unproven | LinkStage::Proven => {
            let own = nonce(random);
            match proof(secret, Side::Accepting, [word, &own]) {
                Some(proof) => {
                    let status = [&own[..], b" ", &proof[..]].concat();
                    let nonces = [Bytes::copy_from_slice(word), own];
                    (Reply::Status(status.into()), LinkStage::Asked(nonces))
                }
                None => refused("ERR this server has no secret"),
            }
        }
    }
}

/// Which of the two servers proves something.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    Connecting,
    Accepting,
}

/// 32 hexadecimal digits that were never used before.
pub(crate) fn nonce(random: &dyn Random) -> Bytes {
    format!("{:016x}{:016x}", random.next_u64(), random.next_u64()).into()
}

/// The proof of a side, given the nonces of the connecting and the accepting side.
pub(crate) fn proof(secret: &[u8], side: Side, nonces: [&[u8]; 2]) -> Option<Bytes> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
    mac.update(match side {
        Side::Connecting => b"connecting",
        Side::Accepting => b"accepting",
    });
    for nonce in nonces {
        mac.update(b" ");
        mac.update(nonce);
    }
    Some(hex(mac.finalize().into_bytes()).into())
}

/// Whether this is the proof of that side.
pub(crate) fn is_proof(secret: &[u8], side: Side, nonces: [&[u8]; 2], given: &[u8]) -> bool {
    proof(secret, side, nonces).is_some_and(|expected| is_secret(&expected, given))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quoin_base::random::SystemRandom;

    #[test]
    fn a_proof_is_of_one_secret_one_side_and_two_nonces() {
        let [ours, theirs] = [nonce(&SystemRandom), nonce(&SystemRandom)];
        let nonces: [&[u8]; 2] = [&ours, &theirs];
        let proven = proof(b"secret", Side::Connecting, nonces).unwrap();
        assert!(is_proof(b"secret", Side::Connecting, nonces, &proven));
        assert!(!is_proof(b"other", Side::Connecting, nonces, &proven));
        assert!(!is_proof(b"secret", Side::Accepting, nonces, &proven));
        assert!(!is_proof(
            b"secret",
            Side::Connecting,
            [&theirs, &ours],
            &proven
        ));
        assert!(!is_proof(b"secret", Side::Connecting, nonces, &proven[1..]));
        assert!(!is_proof(b"secret", Side::Connecting, nonces, b""));
    }
}
