//! Resolves host names to addresses.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use tokio::sync::Semaphore;

use quoin_base::limits::NAME_LOOKUPS_MAX;
use quoin_base::threads;

/// Limits concurrent lookups of names. A running lookup cannot be cancelled, even if nobody waits for it
/// any more.
static LOOKUPS: Semaphore = Semaphore::const_new(NAME_LOOKUPS_MAX);

/// The addresses of a host. A name is resolved on a thread, which ends when the name server
/// replies.
pub(super) async fn addresses_of(host: String, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let turn = LOOKUPS.acquire().await.map_err(io::Error::other)?;
    let looked_up = threads::run("quoin-resolve", move || {
        let addresses = (host, port).to_socket_addrs().map(Vec::from_iter);
        drop(turn);
        addresses
    });
    looked_up.await?
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn few_names_are_looked_up_at_a_time() {
        let of = |host: &str| addresses_of(host.to_owned(), 7);
        let all = u32::try_from(NAME_LOOKUPS_MAX).unwrap();
        let turns = LOOKUPS.acquire_many(all).await.unwrap();
        let moment = Duration::from_millis(50);
        assert!(tokio::time::timeout(moment, of("localhost")).await.is_err());
        // An address is not looked up.
        assert_eq!(of("127.0.0.1").await.unwrap(), [([127, 0, 0, 1], 7).into()]);
        drop(turns);
        assert!(!of("localhost").await.unwrap().is_empty());
        assert_eq!(LOOKUPS.available_permits(), NAME_LOOKUPS_MAX);
    }
}
