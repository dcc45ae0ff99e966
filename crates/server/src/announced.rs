//! The address that a server announces to other servers and clients.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use crate::addresses::Ports;
use crate::version;
use quoin_config::Settings;
use quoin_layout::ServerRow;

/// Addresses reserved for documentation, which no host has. A socket is only connected to them, and
/// sends nothing.
const ELSEWHERE_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const ELSEWHERE_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

/// The row by which other servers know this one.
pub(super) fn own_row(settings: &Settings, ports: Ports, run_id: &str) -> ServerRow {
    let or_own = |announced: u16, own: u16| if announced == 0 { own } else { announced };
    ServerRow {
        beat: 0,
        port: or_own(settings.announce_port, ports.plain),
        tls_port: or_own(settings.announce_tls_port, ports.tls),
        sentinel_port: ports.sentinel,
        sentinel_tls_port: ports.sentinel_tls,
        run_id: run_id.to_owned(),
        version: version::VERSION.to_owned(),
        ip: ip(settings).to_string(),
        hostname: settings.announce_hostname.clone(),
        cluster_port: or_own(settings.cluster_announce_port, ports.cluster),
        cluster_tls_port: or_own(settings.cluster_announce_tls_port, ports.cluster_tls),
    }
}

/// The address that clients should use: a setting, or the first of `bind`, or that of the network
/// card that reaches other networks.
fn ip(settings: &Settings) -> IpAddr {
    if let Some(ip) = settings.announce_ip {
        return ip;
    }
    let is_reachable = |ip: &&IpAddr| !ip.is_loopback();
    let bound = settings.bind.iter().find(is_reachable);
    let bound = bound.or_else(|| settings.bind.first());
    match bound {
        Some(ip) if ip.is_unspecified() => outward_ip(ip.is_ipv6()),
        Some(ip) => *ip,
        None => Ipv4Addr::LOCALHOST.into(),
    }
}

/// The address of this machine towards other networks. Loopback if it has no such address.
fn outward_ip(is_v6: bool) -> IpAddr {
    let (any, elsewhere): (IpAddr, IpAddr) = match is_v6 {
        false => (Ipv4Addr::UNSPECIFIED.into(), ELSEWHERE_V4.into()),
        true => (Ipv6Addr::UNSPECIFIED.into(), ELSEWHERE_V6.into()),
    };
    let outward = || {
        let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
        socket.connect(SocketAddr::new(elsewhere, 9)).ok()?;
        let ip = socket.local_addr().ok()?.ip();
        (!ip.is_unspecified()).then_some(ip)
    };
    match (outward(), is_v6) {
        (Some(ip), _) => ip,
        // `::` takes clients of IPv4 too.
        (None, true) => outward_ip(false),
        (None, false) => Ipv4Addr::LOCALHOST.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: Ports = Ports {
        plain: 7001,
        tls: 7002,
        sentinel: 7003,
        sentinel_tls: 0,
        cluster: 7004,
        cluster_tls: 0,
    };

    fn row(settings: &Settings) -> ServerRow {
        own_row(settings, PORTS, "0123")
    }

    fn bound(ips: &[&str]) -> Settings {
        Settings {
            bind: ips.iter().map(|ip| ip.parse().unwrap()).collect(),
            ..Settings::default()
        }
    }

    #[test]
    fn what_is_announced_is_what_is_bound_unless_settings_say_otherwise() {
        let own = row(&bound(&["127.0.0.1", "10.1.2.3"]));
        assert_eq!(
            (own.ip.as_str(), own.port, own.tls_port),
            ("10.1.2.3", 7001, 7002)
        );
        assert_eq!(row(&bound(&["127.0.0.1", "::1"])).ip, "127.0.0.1");
        let settings = Settings {
            announce_ip: Some("10.9.9.9".parse().unwrap()),
            announce_port: 1,
            announce_tls_port: 2,
            announce_hostname: "a.example".to_owned(),
            ..bound(&["0.0.0.0"])
        };
        let own = row(&settings);
        assert_eq!(
            (own.ip.as_str(), own.port, own.tls_port),
            ("10.9.9.9", 1, 2)
        );
        assert_eq!(own.hostname, "a.example");
        assert_eq!((own.cluster_port, own.cluster_tls_port), (7004, 0));
        let settings = Settings {
            cluster_announce_port: 3,
            ..settings
        };
        assert_eq!(row(&settings).cluster_port, 3);
    }

    #[test]
    fn an_address_that_means_all_is_never_announced() {
        for any in ["0.0.0.0", "::"] {
            let ip: IpAddr = row(&bound(&[any])).ip.parse().unwrap();
            assert!(!ip.is_unspecified(), "{ip}");
        }
    }
}
