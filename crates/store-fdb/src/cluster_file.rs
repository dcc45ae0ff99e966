//! Reads cluster files.

use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

/// The suffix of addresses in a cluster file that use TLS.
pub(super) const TLS_SUFFIX: &str = ":tls";

/// Whether addresses in a cluster file use TLS.
pub(super) fn uses_tls(cluster_file: &Path) -> bool {
    std::fs::read_to_string(cluster_file).is_ok_and(|text| {
        text.lines()
            .filter(|line| !line.trim_start().starts_with('#'))
            .any(|line| line.contains(TLS_SUFFIX))
    })
}

/// How many addresses are tried, and how long each.
const TRIED_MAX: usize = 5;
const TRIED_FOR: Duration = Duration::from_millis(500);

/// An address in a cluster file that accepts connections. The cluster or something else may listen there.
pub(super) fn listening_address(cluster_file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(cluster_file).ok()?;
    addresses(&text).take(TRIED_MAX).find(|address| {
        let resolved = address.to_socket_addrs();
        let mut resolved = resolved.into_iter().flatten();
        resolved.any(|address| TcpStream::connect_timeout(&address, TRIED_FOR).is_ok())
    })
}

/// The addresses, which follow the description and the id.
fn addresses(text: &str) -> impl Iterator<Item = String> {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let listed = lines.filter_map(|line| Some(line.split_once('@')?.1));
    let listed = listed.flat_map(|listed| listed.split(','));
    listed.map(|address| {
        let address = address.trim();
        address
            .strip_suffix(TLS_SUFFIX)
            .unwrap_or(address)
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_accepts_connections_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listening = listener.local_addr().unwrap().to_string();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fdb.cluster");
        // Nothing listens on the discard port of the loopback.
        for (text, expected) in [
            (format!("# a:b@{listening}\na:b@127.0.0.1:9"), None),
            (format!("a:b@127.0.0.1:9,{listening}\n"), Some(&listening)),
            (format!("a:b@{listening}:tls\n"), Some(&listening)),
            ("nothing".to_owned(), None),
        ] {
            std::fs::write(&file, &text).unwrap();
            assert_eq!(listening_address(&file).as_ref(), expected, "{text}");
        }
    }

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
