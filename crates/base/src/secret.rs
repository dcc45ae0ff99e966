//! Secrets and their digits.

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    let digits = bytes.as_ref().iter().map(|byte| format!("{byte:02x}"));
    digits.collect()
}

/// Whether a given text is the secret. The time does not depend on where they differ.
pub fn is_secret(secret: &[u8], given: &[u8]) -> bool {
    let pairs = secret.iter().zip(given);
    let differences = pairs.fold(0, |differences, (a, b)| differences | (a ^ b));
    differences == 0 && secret.len() == given.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_two_digits() {
        assert_eq!(hex([0, 0x0a, 0xff]), "000aff");
    }

    #[test]
    fn only_the_whole_secret_is_the_secret() {
        assert!(is_secret(b"secret", b"secret"));
        for given in [&b"secreT"[..], b"Secret", b"secre", b"secrets", b""] {
            assert!(!is_secret(b"secret", given));
        }
    }
}
