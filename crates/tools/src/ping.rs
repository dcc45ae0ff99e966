//! `quoin ping`: asks a server whether it answers, for health checks of containers and of monitoring.

use std::fmt;
use std::time::Duration;

use quoin_client::{Address, Beside, Client, ClientError};
use quoin_config::{LoadedSettings, server_places};

/// Longest time until the server has accepted the connection, and longest time until each reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// The server answers.
#[derive(Debug)]
pub struct Pong;

impl fmt::Display for Pong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PONG")
    }
}

/// Connects to the server of the command line, or else of the settings, and sends a PING.
///
/// The note in the data folder is not read, because a health check is about the address that
/// clients use.
///
/// # Errors
/// If the server cannot be reached, does not answer in time, or replies anything except PONG.
pub fn run(loaded: &LoadedSettings, beside: &Beside) -> Result<Pong, ClientError> {
    ping(&server_places(loaded, beside).named)
}

fn ping(address: &Address) -> Result<Pong, ClientError> {
    let mut client = Client::connect_within(address, REPLY_TIMEOUT)?;
    let reply = client.call(&["PING"])?;
    match reply.status() {
        Some(b"PONG") => Ok(Pong),
        _ => Err(client.unexpected(&reply)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// The tool's result for a server that answers with `reply`.
    fn answer(reply: &'static str) -> Result<Pong, ClientError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("redis://{}", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 14];
            stream.read_exact(&mut request).unwrap();
            assert_eq!(&request, b"*1\r\n$4\r\nPING\r\n");
            stream.write_all(reply.as_bytes()).unwrap();
        });
        let result = ping(&Address::parse(&address).unwrap());
        server.join().unwrap();
        result
    }

    #[test]
    fn nothing_but_pong_is_good() {
        assert!(answer("+PONG\r\n").is_ok());
        for reply in ["+OK\r\n", "-LOADING still\r\n", "$4\r\nPONG\r\n", ""] {
            assert!(answer(reply).is_err(), "{reply}");
        }
        let error = answer("-NOAUTH Authentication required.\r\n").unwrap_err();
        assert!(error.to_string().contains("--password-file"), "{error}");
    }
}
