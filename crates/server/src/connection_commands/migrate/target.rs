//! The server to which MIGRATE sends keys.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::order::Order;
use crate::state::ServerState;
use quoin_base::limits::MIGRATE_LOOKUPS_MAX;
use quoin_base::threads;
use quoin_data::error::CommandError;
use quoin_data::keys::migrating::Departure;
use quoin_resp::wire::reply_reader::encode_request;

/// Bytes that must be taken within the timeout (Redis).
const BYTES_PER_WRITE: usize = 64 * 1024;
/// The longest line of a reply.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// Lookups of names that may begin. One that is under way cannot be ended, even where nobody waits for it
/// any more.
static LOOKUPS: Semaphore = Semaphore::const_new(MIGRATE_LOOKUPS_MAX);

const NOT_CONNECTED: CommandError =
    CommandError::text("IOERR error or timeout connecting to the client");
const NOT_WRITTEN: CommandError =
    CommandError::text("IOERR error or timeout writing to target instance");
const NOT_READ: CommandError =
    CommandError::text("IOERR error or timeout reading to target instance");

/// Why keys are not there.
pub(super) enum TargetError {
    /// The server has refused a key at least: its first error, without the `-`.
    Refused(String),
    /// The connection is of no use any more.
    Lost(CommandError),
}

/// A connection to the server.
pub(super) struct Target {
    stream: BufReader<TcpStream>,
    timeout: Duration,
    /// It has logged in and chosen the database; else what the server said instead.
    greeted: Option<Result<(), String>>,
}

impl Target {
    /// Connects.
    ///
    /// # Errors
    /// `IOERR`.
    pub(super) async fn connect(order: &Order<'_>) -> Result<Self, CommandError> {
        let host = str::from_utf8(order.host).map_err(|_| NOT_CONNECTED)?;
        let (host, port) = (host.to_owned(), port(order.port));
        let connecting = async {
            let addresses = addresses_of(host, port).await?;
            TcpStream::connect(addresses.as_slice()).await
        };
        let stream = within(order.timeout, connecting).await;
        let stream = stream.map_err(|_| NOT_CONNECTED)?;
        stream.set_nodelay(true).map_err(|_| NOT_CONNECTED)?;
        Ok(Self {
            stream: BufReader::new(stream),
            timeout: order.timeout,
            greeted: None,
        })
    }

    /// Has the server restore keys. Returns those that it has acknowledged, and why not all.
    pub(super) async fn restore(
        &mut self,
        departures: &[Departure],
        order: &Order<'_>,
        state: &ServerState,
    ) -> (Vec<Departure>, Option<TargetError>) {
        let now_ms = state.clock.now_ms();
        // A key whose time is over is gone for all clients.
        let is_alive = |one: &&Departure| one.expire_at_ms.is_none_or(|at_ms| at_ms > now_ms);
        let sent: Vec<&Departure> = departures.iter().filter(is_alive).collect();
        let mut requests = Vec::new();
        let is_first = self.greeted.is_none();
        if is_first {
            requests.extend(greeting(order));
        }
        for departure in &sent {
            requests.extend(restoring(departure, order.replaces, now_ms));
        }
        if self.write(&requests).await.is_err() {
            return (Vec::new(), Some(TargetError::Lost(NOT_WRITTEN)));
        }
        drop(requests);
        if is_first && self.read_greeting(order).await.is_err() {
            return (Vec::new(), Some(TargetError::Lost(NOT_READ)));
        }
        let mut acknowledged = Vec::new();
        let mut refusal = None;
        for departure in sent {
            let Ok(answer) = self.read_answer().await else {
                // Of what comes after this nothing is known.
                return (acknowledged, Some(TargetError::Lost(NOT_READ)));
            };
            let greeted = self.greeted.clone().unwrap_or(Ok(()));
            match greeted.and(answer) {
                Ok(()) => acknowledged.push(departure.clone()),
                Err(line) => {
                    refusal.get_or_insert(line);
                }
            }
        }
        (acknowledged, refusal.map(TargetError::Refused))
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(BYTES_PER_WRITE) {
            within(self.timeout, self.stream.write_all(piece)).await?;
        }
        within(self.timeout, self.stream.flush()).await
    }

    async fn read_greeting(&mut self, order: &Order<'_>) -> io::Result<()> {
        let mut greeted = Ok(());
        for _ in 0..1 + usize::from(order.password.is_some()) {
            let answer = self.read_answer().await?;
            greeted = greeted.and(answer);
        }
        self.greeted = Some(greeted);
        Ok(())
    }

    /// The next reply: OK, or the server's error without the `-`. What answers otherwise has not said that
    /// it has done anything.
    async fn read_answer(&mut self) -> io::Result<Result<(), String>> {
        let line = self.read_line().await?;
        if let Some(error) = line.strip_prefix('-') {
            return Ok(Err(error.to_owned()));
        }
        match line.as_str() {
            "+OK" => Ok(Ok(())),
            // The same as a bulk string.
            "$2" if self.read_line().await? == "OK" => Ok(Ok(())),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// The next line.
    async fn read_line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        let mut limited = (&mut self.stream).take(LINE_BYTES_MAX);
        within(self.timeout, limited.read_until(b'\n', &mut line)).await?;
        match line.strip_suffix(b"\r\n") {
            Some(line) => Ok(String::from_utf8_lossy(line).into_owned()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// The addresses of a host. A name is looked up on a thread, which lasts as long as the name server takes.
async fn addresses_of(host: String, port: u16) -> io::Result<Vec<SocketAddr>> {
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

/// AUTH and SELECT.
fn greeting(order: &Order<'_>) -> Vec<u8> {
    let mut requests = Vec::new();
    if let Some(password) = order.password {
        let words = [
            Some(&b"AUTH"[..]),
            order.user.map(|user| &user[..]),
            Some(password),
        ];
        let words: Vec<&[u8]> = words.into_iter().flatten().collect();
        requests.extend(encode_request(&words));
    }
    requests.extend(encode_request(&["SELECT", &order.database.to_string()]));
    requests
}

fn restoring(departure: &Departure, replaces: bool, now_ms: i64) -> Vec<u8> {
    let ttl_ms = departure.expire_at_ms.map_or(0, |at_ms| at_ms - now_ms);
    let ttl_ms = ttl_ms.to_string();
    let words: [&[u8]; 4] = [
        b"RESTORE",
        &departure.name,
        ttl_ms.as_bytes(),
        &departure.payload,
    ];
    let replace = replaces.then_some(&b"REPLACE"[..]);
    let words: Vec<&[u8]> = words.into_iter().chain(replace).collect();
    encode_request(&words)
}

/// As Redis reads it: the digits at the beginning.
fn port(text: &[u8]) -> u16 {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let digits: String = digits.map(|byte| char::from(*byte)).collect();
    digits.parse().unwrap_or(0)
}

async fn within<T>(
    timeout: Duration,
    operation: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    match tokio::time::timeout(timeout, operation).await {
        Ok(result) => result,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn few_names_are_looked_up_at_a_time() {
        let of = |host: &str| addresses_of(host.to_owned(), 7);
        let all = u32::try_from(MIGRATE_LOOKUPS_MAX).unwrap();
        let turns = LOOKUPS.acquire_many(all).await.unwrap();
        let moment = Duration::from_millis(50);
        assert!(tokio::time::timeout(moment, of("localhost")).await.is_err());
        // An address needs no turn.
        assert_eq!(of("127.0.0.1").await.unwrap(), [([127, 0, 0, 1], 7).into()]);
        drop(turns);
        assert!(!of("localhost").await.unwrap().is_empty());
        assert_eq!(LOOKUPS.available_permits(), MIGRATE_LOOKUPS_MAX);
    }
}
