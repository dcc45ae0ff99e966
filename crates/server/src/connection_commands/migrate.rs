//! MIGRATE: sends keys to another server, and removes those that it has acknowledged.
//!
//! The keys are read, sent and removed one after another, and no batch waits for the network. So a
//! key may change between being read and being removed. The transaction that removes it checks
//! that, and leaves a key that has changed.

use std::future::Future;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::connection_commands::shared::{lossy_text, refusal};
use crate::names::addresses_of;
use crate::session::Session;
use crate::state::ServerState;
use quoin_base::limits::{MIGRATED_BYTES_AT_ONCE, MIGRATED_KEYS_AT_ONCE};
use quoin_data::command::access::KeyLocks;
use quoin_data::command::arguments::{argument, integer, is_word};
use quoin_data::error::CommandError;
use quoin_data::keys::moving::Departure;
use quoin_resp::reply::Reply;
use quoin_resp::wire::reply_reader::encode_request;

/// `MIGRATE host port <key | ""> destination-db timeout [COPY] [REPLACE] [AUTH password | AUTH2
/// username password] [KEYS key [key …]]`.
pub(super) async fn migrate(
    arguments: &[Bytes],
    session: &Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let request = parse(arguments)?;
    let mut keys = existing(&request, session, state).await?;
    if keys.is_empty() {
        return Ok(Reply::Simple("NOKEY"));
    }
    let mut target = Target::connect(&request).await?;
    let mut first_error = None;
    while !keys.is_empty() {
        let departures = read_some(&mut keys, session, state).await?;
        let (acknowledged, error) = target.restore(&departures, &request, state).await;
        if let Some(TargetError::Refused(line)) = &error {
            first_error.get_or_insert_with(|| refused_by_target(line));
        }
        if !request.copies
            && let Some(changed) = depart(acknowledged, session, state).await?
        {
            first_error.get_or_insert_with(|| has_changed(&changed));
        }
        if let Some(TargetError::Lost(lost)) = error {
            return Err(first_error.unwrap_or(lost));
        }
    }
    first_error.map_or(Ok(Reply::OK), Err)
}

fn refused_by_target(line: &str) -> CommandError {
    refusal(format!("ERR Target instance replied with error: {line}"))
}

fn has_changed(key: &Bytes) -> CommandError {
    refusal(format!(
        "ERR key '{}' changed while it was being sent: it stays here, and the target instance has \
         its earlier value",
        lossy_text(key)
    ))
}

/// The keys that exist, in reverse order.
async fn existing(
    request: &MigrateRequest<'_>,
    session: &Session,
    state: &ServerState,
) -> Result<Vec<Bytes>, CommandError> {
    let names = request.keys.to_vec();
    let existing = state.executor.read(session.database, move |context| {
        let names = names.clone();
        Box::pin(async move {
            let found = context.find_each(&names).await?;
            let there = names.into_iter().zip(found);
            let there = there.filter(|(_, found)| found.is_some());
            Ok(there.map(|(name, _)| name).rev().collect())
        })
    });
    existing.await.map_err(CommandError::from)
}

/// Pops keys and reads them until there is enough to send.
async fn read_some(
    keys: &mut Vec<Bytes>,
    session: &Session,
    state: &ServerState,
) -> Result<Vec<Departure>, CommandError> {
    let mut departures = Vec::new();
    let mut bytes = 0;
    while bytes < MIGRATED_BYTES_AT_ONCE
        && departures.len() < MIGRATED_KEYS_AT_ONCE
        && let Some(name) = keys.pop()
    {
        // Each on its own snapshot, because reading many values may take longer than a snapshot lives.
        let read = state.executor.read(session.database, move |context| {
            let name = name.clone();
            Box::pin(async move { context.departure(&name).await })
        });
        if let Some(departure) = read.await.map_err(CommandError::from)? {
            bytes += departure.name.len() + departure.payload.len();
            departures.push(departure);
        }
    }
    Ok(departures)
}

/// Removes keys that the target has acknowledged. Returns the first key that has changed and stays.
async fn depart(
    departures: Vec<Departure>,
    session: &Session,
    state: &ServerState,
) -> Result<Option<Bytes>, CommandError> {
    let removals = departures.into_iter().map(async |departure| {
        let name = departure.name.clone();
        let locks = KeyLocks::Keys(vec![KeyLocks::hash_key(session.database, &name)]);
        let job = state
            .executor
            .transact(session.database, locks, move |context| {
                let departure = departure.clone();
                Box::pin(async move { context.depart(&departure).await })
            });
        let is_gone = job.await.map_err(CommandError::from)?;
        Ok::<_, CommandError>((!is_gone).then_some(name))
    });
    // Concurrently, so that they share batches. All of them, even if one fails.
    let mut first_changed = None;
    for stayed in join_all(removals).await {
        first_changed = first_changed.or(stayed?);
    }
    Ok(first_changed)
}

/// The timeout if none is given (Redis).
const TIMEOUT_DEFAULT_MS: u64 = 1_000;

/// The arguments of MIGRATE.
struct MigrateRequest<'a> {
    host: &'a Bytes,
    port: &'a Bytes,
    database: i64,
    timeout: Duration,
    copies: bool,
    replaces: bool,
    user: Option<&'a Bytes>,
    password: Option<&'a Bytes>,
    keys: &'a [Bytes],
}

/// Reads the arguments.
fn parse(arguments: &[Bytes]) -> Result<MigrateRequest<'_>, CommandError> {
    let key = std::slice::from_ref(argument(arguments, 3)?);
    let mut request = MigrateRequest {
        host: argument(arguments, 1)?,
        port: argument(arguments, 2)?,
        database: 0,
        timeout: Duration::ZERO,
        copies: false,
        replaces: false,
        user: None,
        password: None,
        keys: key,
    };
    let mut options = arguments.get(6..).unwrap_or_default();
    loop {
        options = match options {
            [] => break,
            [word, others @ ..] if is_word(word, "copy") => {
                request.copies = true;
                others
            }
            [word, others @ ..] if is_word(word, "replace") => {
                request.replaces = true;
                others
            }
            [word, password, others @ ..] if is_word(word, "auth") => {
                request.password = Some(password);
                others
            }
            [word, user, password, others @ ..] if is_word(word, "auth2") => {
                (request.user, request.password) = (Some(user), Some(password));
                others
            }
            [word, others @ ..] if is_word(word, "keys") => {
                if !argument(arguments, 3)?.is_empty() {
                    return Err(CommandError::text(
                        "ERR When using MIGRATE KEYS option, the key argument must be set to the \
                         empty string",
                    ));
                }
                request.keys = others;
                break;
            }
            _ => return Err(CommandError::Syntax),
        };
    }
    let timeout_ms = integer(argument(arguments, 5)?)?;
    request.database = integer(argument(arguments, 4)?)?;
    let timeout_ms = u64::try_from(timeout_ms).ok().filter(|ms| *ms > 0);
    request.timeout = Duration::from_millis(timeout_ms.unwrap_or(TIMEOUT_DEFAULT_MS));
    Ok(request)
}

/// Bytes that must be written within the timeout (Redis).
const BYTES_PER_WRITE: usize = 64 * 1024;
/// The longest line of a reply.
const LINE_BYTES_MAX: u64 = 64 * 1024;

const NOT_CONNECTED: CommandError =
    CommandError::text("IOERR error or timeout connecting to the client");
const NOT_WRITTEN: CommandError =
    CommandError::text("IOERR error or timeout writing to target instance");
const NOT_READ: CommandError =
    CommandError::text("IOERR error or timeout reading to target instance");

/// Why keys were not restored.
enum TargetError {
    /// The server has refused at least one key. Its first error, without the `-`.
    Refused(String),
    /// The connection is lost.
    Lost(CommandError),
}

/// A connection to the server.
struct Target {
    stream: BufReader<TcpStream>,
    timeout: Duration,
    /// The result of AUTH and SELECT. `None` before the first request.
    greeted: Option<Result<(), String>>,
}

impl Target {
    /// Connects.
    ///
    /// # Errors
    /// `IOERR`.
    async fn connect(request: &MigrateRequest<'_>) -> Result<Self, CommandError> {
        let host = str::from_utf8(request.host).map_err(|_| NOT_CONNECTED)?;
        let (host, port) = (host.to_owned(), port(request.port));
        let connecting = async {
            let addresses = addresses_of(host, port).await?;
            TcpStream::connect(addresses.as_slice()).await
        };
        let stream = within(request.timeout, connecting).await;
        let stream = stream.map_err(|_| NOT_CONNECTED)?;
        stream.set_nodelay(true).map_err(|_| NOT_CONNECTED)?;
        Ok(Self {
            stream: BufReader::new(stream),
            timeout: request.timeout,
            greeted: None,
        })
    }

    /// Sends RESTORE for keys. Returns the acknowledged keys, and the error if some were not.
    async fn restore(
        &mut self,
        departures: &[Departure],
        request: &MigrateRequest<'_>,
        state: &ServerState,
    ) -> (Vec<Departure>, Option<TargetError>) {
        let now_ms = state.clock.now_ms();
        // A key that has expired does not exist for any client.
        let is_alive = |one: &&Departure| one.expire_at_ms.is_none_or(|at_ms| at_ms > now_ms);
        let sent: Vec<&Departure> = departures.iter().filter(is_alive).collect();
        let mut requests = Vec::new();
        let is_first = self.greeted.is_none();
        if is_first {
            requests.extend(greeting(request));
        }
        for departure in &sent {
            requests.extend(restoring(departure, request.replaces, now_ms));
        }
        if self.write(&requests).await.is_err() {
            return (Vec::new(), Some(TargetError::Lost(NOT_WRITTEN)));
        }
        drop(requests);
        if is_first && self.read_greeting(request).await.is_err() {
            return (Vec::new(), Some(TargetError::Lost(NOT_READ)));
        }
        let mut acknowledged = Vec::new();
        let mut refusal = None;
        for departure in sent {
            let Ok(answer) = self.read_answer().await else {
                // Nothing is known about the rest.
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

    async fn read_greeting(&mut self, request: &MigrateRequest<'_>) -> io::Result<()> {
        let mut greeted = Ok(());
        for _ in 0..1 + usize::from(request.password.is_some()) {
            let answer = self.read_answer().await?;
            greeted = greeted.and(answer);
        }
        self.greeted = Some(greeted);
        Ok(())
    }

    /// The next reply: OK, or the server's error without the `-`. Any other reply does not confirm
    /// that the server has executed the command.
    async fn read_answer(&mut self) -> io::Result<Result<(), String>> {
        let line = self.read_line().await?;
        if let Some(error) = line.strip_prefix('-') {
            return Ok(Err(error.to_owned()));
        }
        match line.as_str() {
            "+OK" => Ok(Ok(())),
            // OK as a bulk string.
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

/// AUTH and SELECT.
fn greeting(request: &MigrateRequest<'_>) -> Vec<u8> {
    let mut requests = Vec::new();
    if let Some(password) = request.password {
        let words = [
            Some(&b"AUTH"[..]),
            request.user.map(|user| &user[..]),
            Some(password),
        ];
        let words: Vec<&[u8]> = words.into_iter().flatten().collect();
        requests.extend(encode_request(&words));
    }
    requests.extend(encode_request(&["SELECT", &request.database.to_string()]));
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

/// The port as Redis parses it: the leading digits.
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
