//! Passwords, of which only the SHA-256 is kept.

use sha2::{Digest, Sha256};

/// Hexadecimal digits of a SHA-256.
const DIGITS: usize = 64;

/// The SHA-256 of a password, as 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PasswordHash(String);

impl PasswordHash {
    /// Of a password.
    pub(super) fn of(password: &[u8]) -> Self {
        let digest = Sha256::digest(password);
        Self(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Reads one; `None` where it is none.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let text = std::str::from_utf8(text).ok()?;
        let is_hash = text.len() == DIGITS && text.as_bytes().iter().all(is_digit);
        is_hash.then(|| Self(text.to_owned()))
    }

    /// Whether both are the same. The time that it takes does not tell where they differ.
    pub(super) fn matches(&self, other: &Self) -> bool {
        let pairs = self.0.bytes().zip(other.0.bytes());
        let differences = pairs.fold(0, |differences, (a, b)| differences | (a ^ b));
        differences == 0 && self.0.len() == other.0.len()
    }

    /// The digits.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Rules of a user, in which passwords are given by their SHA-256.
pub fn without_passwords(rules: &[String]) -> Vec<String> {
    let hashed = |rule: &String| match rule.split_at_checked(1) {
        Some((">", password)) => format!("#{}", PasswordHash::of(password.as_bytes()).as_str()),
        Some(("<", password)) => format!("!{}", PasswordHash::of(password.as_bytes()).as_str()),
        _ => rule.clone(),
    };
    rules.iter().map(hashed).collect()
}
