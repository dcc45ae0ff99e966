//! Places for TLS handshakes that are under way: bounded in all, and for each address, so that the
//! clients of one address cannot take all of them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use quoin_base::limits::{TLS_HANDSHAKES_MAX, TLS_HANDSHAKES_PER_ADDRESS_MAX};

/// Bits of an IPv6 address that name a network: one host may have all addresses below.
const IPV6_NETWORK_BITS: u32 = 64;

/// Places for handshakes.
#[derive(Debug)]
pub(super) struct Places {
    all: Semaphore,
    /// Those of each address that has clients which wait for a place or have one.
    by_address: Mutex<HashMap<IpAddr, Arc<Semaphore>>>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(super) struct Place<'p> {
    _of_address: OfAddress<'p>,
    _of_all: SemaphorePermit<'p>,
}

/// A client's share in the places of its address. Forgets the address with the last of its clients.
#[derive(Debug)]
struct OfAddress<'p> {
    places: &'p Places,
    address: IpAddr,
    semaphore: Option<Arc<Semaphore>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Places {
    pub(super) fn new() -> Self {
        Self {
            all: Semaphore::new(TLS_HANDSHAKES_MAX),
            by_address: Mutex::default(),
        }
    }

    /// Waits for a place for a client of this address. Clients of one address wait for each other.
    /// `None` once there are no places any more. Cancel-safe.
    pub(super) async fn take(&self, address: IpAddr) -> Option<Place<'_>> {
        let address = network(address);
        let semaphore = match self.lock().entry(address) {
            Entry::Occupied(known) => Arc::clone(known.get()),
            Entry::Vacant(free) => {
                Arc::clone(free.insert(Arc::new(Semaphore::new(TLS_HANDSHAKES_PER_ADDRESS_MAX))))
            }
        };
        let mut of_address = OfAddress {
            places: self,
            address,
            semaphore: Some(Arc::clone(&semaphore)),
            permit: None,
        };
        of_address.permit = Some(semaphore.acquire_owned().await.ok()?);
        Some(Place {
            _of_address: of_address,
            _of_all: self.all.acquire().await.ok()?,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Arc<Semaphore>>> {
        self.by_address
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OfAddress<'_> {
    fn drop(&mut self) {
        // Under the lock, so that nobody joins meanwhile.
        let mut by_address = self.places.lock();
        self.permit = None;
        self.semaphore = None;
        if let Entry::Occupied(known) = by_address.entry(self.address)
            && Arc::strong_count(known.get()) == 1
        {
            known.remove();
        }
    }
}

/// What counts as one address.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let host_bits = Ipv6Addr::BITS - IPV6_NETWORK_BITS;
            IpAddr::V6(Ipv6Addr::from_bits(
                address.to_bits() >> host_bits << host_bits,
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_address_does_not_get_all_places() {
        let places = Places::new();
        let take = |address| places.take(ip(address)).now_or_never();
        let mut taken: Vec<_> = (0..TLS_HANDSHAKES_PER_ADDRESS_MAX)
            .map(|_| take("192.0.2.1").unwrap())
            .collect();
        assert!(take("192.0.2.1").is_none());
        assert!(take("::ffff:192.0.2.1").is_none());
        let other = take("192.0.2.2").unwrap();
        taken.pop();
        assert!(take("192.0.2.1").is_some());
        drop((taken, other));
        assert!(places.lock().is_empty());
    }

    #[test]
    fn all_addresses_together_are_bounded() {
        let places = Places::new();
        let take = |number: usize| {
            let address = IpAddr::from([192, 0, 2, u8::try_from(number % 200).unwrap()]);
            places.take(address).now_or_never()
        };
        let taken: Vec<_> = (0..TLS_HANDSHAKES_MAX)
            .map(|number| take(number).unwrap())
            .collect();
        assert!(take(201).is_none());
        drop(taken);
        assert!(take(201).is_some());
        assert!(places.lock().is_empty());
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_address() {
        assert_eq!(network(ip("2001:db8:1:2:3:4:5:6")), ip("2001:db8:1:2::"));
        assert_ne!(network(ip("2001:db8:1:3::")), network(ip("2001:db8:1:2::")));
    }
}
