//! Where tools beside a server find it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::settings::Settings;
use crate::redis_client::Address;
use crate::tls::ClientOptions;

/// Where a server with these settings is reached from its own machine: at its Unix socket, its TCP
/// port, or its port for TLS.
pub(crate) fn own_address(settings: &Settings) -> Address {
    let at = |host, port, tls| Address {
        host,
        port,
        user: None,
        password: settings.requirepass.clone(),
        database: None,
        tls,
    };
    if let Some(path) = &settings.unixsocket {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        return at(path.display().to_string(), 0, None);
    }
    let ip = match settings.bind.first() {
        Some(IpAddr::V6(ip)) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        Some(IpAddr::V4(ip)) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Some(ip) => *ip,
        None => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    match settings.tcp_port() {
        Some(port) => at(ip.to_string(), port, None),
        None => {
            let options = Box::new(ClientOptions::beside(&settings.tls));
            at(ip.to_string(), settings.tls_port, Some(options))
        }
    }
}
