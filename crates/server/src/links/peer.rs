//! A link to another server, from the side that forwards commands.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::connecting::{self, Connected, Connector};
use super::frame::{FrameError, GOODBYE, put_request, read_response, take_frame};
use quoin_base::limits::{
    FORWARDED_BYTES_AT_ONCE_MAX, FORWARDED_FRAME_BYTES_MAX, FORWARDED_MAX,
    FORWARDED_REPLY_FRAME_BYTES_MAX,
};
use quoin_base::log_throttle::LogThrottle;
use quoin_engine::Call;
use quoin_engine::Forwarded;
use quoin_engine::roster::{LiveServer, RosterWatch};

/// Time after a failure before another connection is tried.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Longest time until the other server has accepted a link.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// How long a server that has left may take to answer what it has begun.
const STOPS_WITHIN: Duration = Duration::from_secs(2);
/// Bytes that are read together.
const READ_BYTES: usize = 64 * 1024;
/// Bytes of requests that are written together.
const WRITE_BYTES: usize = 64 * 1024;

/// Another server.
pub(super) struct Peer {
    server: LiveServer,
    roster: RosterWatch,
    connector: Arc<Connector>,
    state: Mutex<State>,
    next_number: AtomicU64,
    held: Arc<HeldFrames>,
    failing: LogThrottle,
}

enum State {
    /// No connection is tried before this time.
    Down {
        until: Instant,
    },
    Connecting,
    Up(mpsc::Sender<Handed>),
}

/// Calls that are handed over.
struct Handed {
    number: u64,
    frame: BytesMut,
    respond: Respond,
}

/// Where the response goes. The frame counts until it has arrived.
struct Respond {
    sender: oneshot::Sender<Forwarded>,
    _held: Held,
}

impl Respond {
    fn send(self, forwarded: Forwarded) {
        // The client may be gone.
        let _ = self.sender.send(forwarded);
    }
}

/// Frames that are handed over and not answered.
#[derive(Default)]
struct HeldFrames {
    frames: AtomicUsize,
    bytes: AtomicUsize,
}

/// Counts a frame until it is dropped.
struct Held {
    bytes: usize,
    all: Arc<HeldFrames>,
}

impl Held {
    fn new(bytes: usize, all: &Arc<HeldFrames>) -> Self {
        all.frames.fetch_add(1, Ordering::Relaxed);
        all.bytes.fetch_add(bytes, Ordering::Relaxed);
        Self {
            bytes,
            all: Arc::clone(all),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.frames.fetch_sub(1, Ordering::Relaxed);
        self.all.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Peer {
    pub(super) fn new(server: LiveServer, roster: RosterWatch, connector: &Arc<Connector>) -> Self {
        Self {
            server,
            roster,
            connector: Arc::clone(connector),
            state: Mutex::new(State::Down {
                until: Instant::now(),
            }),
            next_number: AtomicU64::new(GOODBYE + 1),
            held: Arc::default(),
            failing: LogThrottle::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the other server accepts commands now. If there is no link, begins to make one.
    pub(super) fn is_up(self: &Arc<Self>) -> bool {
        let mut state = self.state();
        match &*state {
            State::Up(handed) => !handed.is_closed(),
            State::Connecting => false,
            State::Down { until } if *until > Instant::now() => false,
            State::Down { .. } => {
                *state = State::Connecting;
                let peer = Arc::clone(self);
                self.connector
                    .runtime
                    .spawn(async move { peer.run().await });
                false
            }
        }
    }

    /// Hands calls over. `None` if it takes no more.
    pub(super) fn hand_over(
        &self,
        calls: &[Call],
        reply_bytes_max: usize,
    ) -> Option<oneshot::Receiver<Forwarded>> {
        let held = &self.held;
        if held.frames.load(Ordering::Relaxed) >= FORWARDED_MAX
            || held.bytes.load(Ordering::Relaxed) >= FORWARDED_BYTES_AT_ONCE_MAX
        {
            return None;
        }
        let mut frame = BytesMut::new();
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        put_request(number, reply_bytes_max, calls, &mut frame)?;
        if frame.len() > FORWARDED_FRAME_BYTES_MAX {
            return None;
        }
        let state = self.state();
        let State::Up(handed) = &*state else {
            return None;
        };
        // Does not wait for room.
        let place = handed.try_reserve().ok()?;
        let (respond, response) = oneshot::channel();
        let respond = Respond {
            sender: respond,
            _held: Held::new(frame.len(), &self.held),
        };
        place.send(Handed {
            number,
            frame,
            respond,
        });
        Some(response)
    }

    /// Accepts nothing more for a while.
    fn end(&self) {
        *self.state() = State::Down {
            until: Instant::now() + RETRY_AFTER,
        };
    }

    async fn run(&self) {
        let connecting = connecting::connect(&self.connector, &self.server.row);
        let ended = match timeout(CONNECT_MAX, connecting).await {
            Ok(Ok(connected)) => self.serve(connected).await,
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut)),
        };
        self.end();
        if let Err(error) = ended
            && let Some(more) = self.failing.pass()
        {
            let row = &self.server.row;
            tracing::warn!(
                "no link to the server at {}, so commands on its keys run here: {error}{more}",
                row.ip
            );
        }
    }

    /// Waits until the server is no longer alive. If it only stops, also waits for what it may
    /// still answer.
    async fn is_dead(&self) {
        self.has_left().await;
        self.end();
        tokio::time::sleep(STOPS_WITHIN).await;
    }

    async fn has_left(&self) {
        let mut rosters = self.roster.clone();
        loop {
            let roster = rosters.known().await;
            let is_it = |other: &LiveServer| other.instance == self.server.instance;
            if !roster.servers().iter().any(is_it) {
                return;
            }
            rosters.changed().await;
        }
    }

    /// Reads responses, and passes them on.
    async fn read(
        &self,
        mut reader: impl AsyncRead + Unpin,
        mut input: BytesMut,
        sent: &Sent,
    ) -> io::Result<()> {
        loop {
            let frame = take_frame(&mut input, FORWARDED_REPLY_FRAME_BYTES_MAX);
            let Some(frame) = frame.map_err(invalid)? else {
                input.reserve(READ_BYTES);
                if reader.read_buf(&mut input).await? > 0 {
                    continue;
                }
                return match sent.lock().is_empty() {
                    true => Ok(()),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            };
            let response = read_response(frame).map_err(invalid)?;
            if response.number == GOODBYE {
                self.end();
                continue;
            }
            let respond = sent.lock().remove(&response.number);
            let respond = respond.ok_or_else(|| invalid(FrameError::Unknown("number")))?;
            respond.send(match response.replies {
                Some(replies) => Forwarded::Ran(replies),
                None => Forwarded::NotRun,
            });
        }
    }

    async fn serve(&self, connected: Connected) -> io::Result<()> {
        let (sender, mut handed) = mpsc::channel(FORWARDED_MAX);
        *self.state() = State::Up(sender);
        let sent = Sent::default();
        let (reader, writer) = tokio::io::split(connected.stream);
        let ended = tokio::select! {
            ended = self.read(reader, connected.input, &sent) => ended,
            ended = write(writer, &mut handed, &sent) => ended,
            // It may never answer.
            () = self.is_dead() => Ok(()),
        };
        self.end();
        // Requests that were never sent can run elsewhere.
        while let Ok(unsent) = handed.try_recv() {
            unsent.respond.send(Forwarded::NotRun);
        }
        ended
    }
}

/// Requests that were sent and have no response yet, by number.
#[derive(Default)]
struct Sent(Mutex<HashMap<u64, Respond>>);

impl Sent {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Respond>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        for (_, respond) in self.lock().drain() {
            respond.send(Forwarded::Unknown);
        }
    }
}

/// Writes the requests handed over, those that wait together at once.
async fn write(
    mut writer: impl AsyncWrite + Unpin,
    handed: &mut mpsc::Receiver<Handed>,
    sent: &Sent,
) -> io::Result<()> {
    let mut output = BytesMut::new();
    loop {
        let mut next = handed.recv().await;
        if next.is_none() {
            // The other server accepts nothing more. It still answers what it has, and then ends
            // the link.
            writer.shutdown().await?;
            return std::future::pending().await;
        }
        while let Some(Handed {
            number,
            frame,
            respond,
        }) = next
        {
            sent.lock().insert(number, respond);
            output.unsplit(frame);
            next = match output.len() < WRITE_BYTES {
                true => handed.try_recv().ok(),
                false => None,
            };
        }
        writer.write_all(&output).await?;
        output.clear();
    }
}

fn invalid(error: FrameError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
