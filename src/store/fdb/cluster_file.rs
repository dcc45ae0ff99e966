//! What a cluster file says.

use std::path::Path;

/// The end of addresses in a cluster file that use TLS.
pub(super) const TLS_SUFFIX: &str = ":tls";

/// Whether addresses in a cluster file use TLS.
pub(super) fn uses_tls(cluster_file: &Path) -> bool {
    std::fs::read_to_string(cluster_file).is_ok_and(|text| {
        text.lines()
            .filter(|line| !line.trim_start().starts_with('#'))
            .any(|line| line.contains(TLS_SUFFIX))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_file_asks_for_tls_by_its_addresses() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fdb.cluster");
        for (text, expected) in [
            ("a:b@10.0.0.1:4500:tls,10.0.0.2:4500:tls\n", true),
            ("a:b@10.0.0.1:4500\n", false),
            ("# a:b@10.0.0.1:4500:tls\na:b@10.0.0.1:4500\n", false),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(uses_tls(&file), expected, "{text}");
        }
        assert!(!uses_tls(&folder.path().join("nothing")));
    }
}
