//! Finding the server that has a data folder open: for tools that work beside it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use super::{Address, Client, ClientError};

/// Where a server with these settings is reached from its own machine without TLS: at its Unix socket,
/// or its TCP port; `None` if it has neither.
pub(crate) fn own_address(
    bind: &[IpAddr],
    port: Option<u16>,
    unixsocket: Option<&Path>,
    password: Option<&str>,
) -> Option<Address> {
    let at = |host, port| Address {
        host,
        port,
        user: None,
        password: password.map(str::to_owned),
        database: None,
        tls: None,
    };
    if let Some(path) = unixsocket {
        let path = std::path::absolute(path).ok()?;
        return Some(at(path.display().to_string(), 0));
    }
    let ip = match bind.first() {
        Some(IpAddr::V6(ip)) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        Some(IpAddr::V4(ip)) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Some(ip) => *ip,
        None => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    Some(at(ip.to_string(), port?))
}

/// The folder that a server has open, if it is not this one.
pub(crate) fn other_folder(
    client: &mut Client,
    folder: &Path,
) -> Result<Option<String>, ClientError> {
    let reply = client.call(&["CONFIG", "GET", "dir"])?;
    let theirs = match reply.clone().into_strings().as_deref() {
        Some([_, folder]) => String::from_utf8_lossy(folder).into_owned(),
        _ => return Err(client.unexpected(&reply)),
    };
    Ok((!is_same(folder, Path::new(&theirs))).then_some(theirs))
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
