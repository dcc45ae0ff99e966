//! Finds the server that has a data folder open, for tools that work next to it.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::{Arg, ArgMatches};

use super::access::{Access, End, tls_flags};
use super::address::Address;
use super::stream::REPLY_TIMEOUT;
use super::{Client, ClientError};

const SERVER: &str = "server";

/// The address of the server from the command line, and how a tool logs in there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beside {
    /// The server's address, if it is given.
    pub server: Option<Address>,
    /// How to log in.
    pub access: Access,
}

impl Beside {
    /// The flags.
    pub fn flags() -> Vec<Arg> {
        let server = Arg::new(SERVER).long(SERVER).value_name("ADDRESS").help(
            "The server that has the folder open: redis://host:port, rediss:// for TLS, or \
                 unix:///path [default: the address that it wrote to the folder, otherwise that of \
                 the settings]",
        );
        let login = End::QUOIN.flags().into_iter();
        std::iter::once(server)
            .chain(login)
            .chain(tls_flags())
            .collect()
    }

    /// The address and login from the command line and the environment.
    ///
    /// # Errors
    /// What is wrong, in words for people.
    pub fn parse(matches: &ArgMatches, variables: &[(OsString, OsString)]) -> Result<Self, String> {
        let server = matches.get_one::<String>(SERVER);
        let server = server.map(|text| Address::parse(text)).transpose();
        Ok(Self {
            server: server.map_err(|reason| format!("--{SERVER}: {reason}"))?,
            access: End::QUOIN.access(matches, variables)?,
        })
    }
}

/// Why a tool cannot ask the server that has a folder open.
#[derive(Debug)]
pub enum BesideError {
    /// It cannot be reached, or refuses.
    Client(ClientError),
    /// The server at this address has another folder open.
    OtherServer {
        /// Its address.
        address: Address,
        /// Its folder.
        theirs: String,
    },
}

impl From<ClientError> for BesideError {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

/// Possible addresses of the server that has a folder open.
pub struct Places {
    /// The address in the server's own note in the folder.
    pub noted: Option<Address>,
    /// As the settings or the command line say, or by the defaults.
    pub named: Address,
    /// Whether the defaults alone say it.
    pub is_default: bool,
}

/// Connects to the server that has the folder open: at the address that it has noted, or else at the address
/// of the settings. If a server has ended or is starting, the note and the defaults differ. Then any program
/// may listen at the default address, and it would be sent a password.
pub fn connect_beside(
    places: &Places,
    folder: &Path,
    reply_timeout: Option<Duration>,
) -> Result<(Client, Address), BesideError> {
    let reply_timeout = reply_timeout.unwrap_or(REPLY_TIMEOUT);
    if let Some(noted) = &places.noted {
        match try_address(noted, folder, reply_timeout) {
            Err(BesideError::OtherServer { .. })
            | Err(BesideError::Client(ClientError::Connect { .. }))
                if !places.is_default => {}
            found => return found,
        }
    }
    try_address(&places.named, folder, reply_timeout)
}

fn try_address(
    address: &Address,
    folder: &Path,
    reply_timeout: Duration,
) -> Result<(Client, Address), BesideError> {
    let mut client = Client::connect_within(address, reply_timeout)?;
    let reply = client.call(&["CONFIG", "GET", "dir"])?;
    let theirs = match reply.clone().into_strings().as_deref() {
        Some([_, folder]) => String::from_utf8_lossy(folder).into_owned(),
        _ => return Err(client.unexpected(&reply).into()),
    };
    match is_same(folder, Path::new(&theirs)) {
        true => Ok((client, address.clone())),
        false => Err(BesideError::OtherServer {
            address: address.clone(),
            theirs,
        }),
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn who_listens_at_the_defaults_is_not_asked_where_a_note_leads_nowhere() {
        let address = |listener: &TcpListener| {
            let at = listener.local_addr().unwrap();
            Address::parse(&format!("redis://:secret@{at}")).unwrap()
        };
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        other.set_nonblocking(true).unwrap();
        let gone = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut places = Places {
            noted: Some(address(&gone)),
            named: address(&other),
            is_default: true,
        };
        drop(gone);
        let ask = |places: &Places| {
            let wait = Some(Duration::from_millis(100));
            assert!(connect_beside(places, Path::new("/"), wait).is_err());
            other.accept().map(drop).map_err(|error| error.kind())
        };
        assert_eq!(ask(&places), Err(ErrorKind::WouldBlock));
        places.is_default = false;
        assert_eq!(ask(&places), Ok(()));
    }
}
