//! The version of this build.

/// The version of the package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit from which this was built: 40 hexadecimal digits, or empty if it is unknown.
pub const COMMIT: &str = env!("BUILD_COMMIT");

/// The first ten digits of [`COMMIT`], for people, or `unknown`.
pub const SHORT_COMMIT: &str = env!("BUILD_SHORT_COMMIT");

/// The version, the commit, and which stores this build has.
pub const DESCRIPTION: &str = if cfg!(feature = "fdb") {
    concat!(
        env!("CARGO_PKG_VERSION"),
        " (commit ",
        env!("BUILD_SHORT_COMMIT"),
        ", with FoundationDB)"
    )
} else {
    concat!(
        env!("CARGO_PKG_VERSION"),
        " (commit ",
        env!("BUILD_SHORT_COMMIT"),
        ", without FoundationDB)"
    )
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_has_40_digits_or_none() {
        assert!(COMMIT.is_empty() || COMMIT.len() == 40, "{COMMIT}");
        assert!(COMMIT.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match COMMIT.get(..10) {
            Some(digits) => assert_eq!(SHORT_COMMIT, digits),
            None => assert_eq!(SHORT_COMMIT, "unknown"),
        }
    }
}
