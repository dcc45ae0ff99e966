//! Messages that wait to be written to a client. Their number is bounded: a client that does not read is
//! disconnected. Also counts the memory of all clients.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use quoin_config::OutputLimit;
use quoin_data::unit::signals::{ChannelKind, Message};
use quoin_resp::reply::Reply;
use quoin_resp::wire::encode::{Protocol, encode, encode_push_header};

/// Capacity for messages that an empty mailbox keeps.
const IDLE_MESSAGES_MAX: usize = 16;

/// An encoded message without its header, which differs between RESP2 and RESP3. All subscribers of a
/// channel share the bytes.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    form: Form,
    body: Bytes,
}

/// The header before the body.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// A header with this number of elements.
    Elements(usize),
    /// No header: the body is a line.
    Line,
    /// The body names changed keys. An empty body means all keys. A RESP2 client gets it as a
    /// message of a channel, if other clients redirect invalidations to it.
    Invalidation { is_redirected: bool },
    /// No header: the body is a push message, which only RESP3 has.
    Push,
}

/// Redis's channel of changed keys, for RESP2.
const INVALIDATION_HEADER: &[u8] = b"*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n";

impl Frame {
    fn with_body(form: Form, body: Vec<u8>, memory: &Arc<BufferMemory>) -> Self {
        let body = SharedBytes::new(body, Arc::clone(memory));
        Self {
            form,
            body: Bytes::from_owner(body),
        }
    }

    fn new(words: &[&Bytes], kind: &'static [u8], memory: &Arc<BufferMemory>) -> Self {
        let length = words.iter().map(|word| word.len() + 16).sum::<usize>();
        let mut body = BytesMut::with_capacity(length + 16);
        let kind = Bytes::from_static(kind);
        for word in std::iter::once(&kind).chain(words.iter().copied()) {
            encode(&Reply::Bulk(word.clone()), Protocol::Resp2, &mut body);
        }
        Self::with_body(Form::Elements(words.len() + 1), body.into(), memory)
    }

    /// For subscribers of the channel.
    pub(crate) fn message(message: &Message, memory: &Arc<BufferMemory>) -> Self {
        let kind = match message.kind {
            ChannelKind::Global => b"message".as_slice(),
            ChannelKind::Shard => b"smessage",
        };
        Self::new(&[&message.channel, &message.payload], kind, memory)
    }

    /// A line for monitors.
    pub(crate) fn line(line: Vec<u8>, memory: &Arc<BufferMemory>) -> Self {
        Self::with_body(Form::Line, line, memory)
    }

    /// For subscribers of a pattern that the channel matches.
    pub(crate) fn pattern_message(
        pattern: &Bytes,
        message: &Message,
        memory: &Arc<BufferMemory>,
    ) -> Self {
        let words = [pattern, &message.channel, &message.payload];
        Self::new(&words, b"pmessage", memory)
    }

    /// For clients that track keys: these keys have changed, or all keys if `None`.
    pub(crate) fn invalidation(keys: Option<&[&Bytes]>, memory: &Arc<BufferMemory>) -> Self {
        let mut body = BytesMut::new();
        if let Some(keys) = keys {
            let names = keys.iter().map(|key| Reply::Bulk((*key).clone()));
            encode(&Reply::Array(names.collect()), Protocol::Resp2, &mut body);
        }
        let form = Form::Invalidation {
            is_redirected: false,
        };
        Self::with_body(form, body.into(), memory)
    }

    /// An invalidation for the client that others redirect theirs to.
    pub(crate) fn redirected(&self) -> Self {
        Self {
            form: Form::Invalidation {
                is_redirected: true,
            },
            body: self.body.clone(),
        }
    }

    /// For a client that redirects invalidations to a client that is gone.
    pub(crate) fn broken_redirect(redirect: u64, memory: &Arc<BufferMemory>) -> Self {
        let line = format!(">2\r\n$21\r\ntracking-redir-broken\r\n:{redirect}\r\n");
        Self::with_body(Form::Push, line.into(), memory)
    }

    /// Appends the frame in the client's protocol. Appends nothing if the protocol cannot express it.
    fn put(&self, protocol: Protocol, is_subscriber: bool, output: &mut BytesMut) {
        match (self.form, protocol) {
            (Form::Elements(elements), _) => encode_push_header(elements, protocol, output),
            (Form::Line, _) | (Form::Push, Protocol::Resp3) => {}
            (Form::Invalidation { .. }, Protocol::Resp3) => {
                encode_push_header(2, protocol, output);
                encode(&Reply::bulk("invalidate"), protocol, output);
            }
            (Form::Invalidation { is_redirected }, Protocol::Resp2)
                if is_redirected && is_subscriber =>
            {
                output.extend_from_slice(INVALIDATION_HEADER);
            }
            (Form::Invalidation { .. } | Form::Push, Protocol::Resp2) => return,
        }
        match self.form {
            Form::Invalidation { .. } if self.body.is_empty() => {
                encode(&Reply::Null, protocol, output);
            }
            _ => output.extend_from_slice(&self.body),
        }
    }

    /// Bytes that count against the limit: the whole body although it is shared, as in Redis.
    fn size_bytes(&self) -> u64 {
        (self.body.len() + size_of::<Self>()) as u64
    }
}

/// The result of [`Mailbox::push`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The message waits.
    Queued,
    /// The message exceeds the limit. The mailbox is closed, and the client must be disconnected.
    Overflowed,
}

/// Messages that wait to be written to one client.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    state: Mutex<State>,
    arrived: Notify,
    memory: Arc<BufferMemory>,
}

#[derive(Debug, Default)]
struct State {
    frames: VecDeque<Frame>,
    bytes: u64,
    /// When the soft limit was exceeded.
    above_soft_since_ms: Option<i64>,
    is_closed: bool,
}

impl State {
    fn exceeds(&mut self, limit: &OutputLimit, now_ms: i64) -> bool {
        limit.is_exceeded(self.bytes, &mut self.above_soft_since_ms, now_ms)
    }

    fn close(&mut self, memory: &BufferMemory) {
        memory.replace(frames_bytes(self.frames.len()), 0);
        self.frames = VecDeque::new();
        self.bytes = 0;
        self.is_closed = true;
    }
}

/// Memory of `count` queue entries, without the shared bytes of the messages.
fn frames_bytes(count: usize) -> usize {
    count * size_of::<Frame>()
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.close();
    }
}

impl Mailbox {
    /// An empty mailbox whose messages count in `memory`.
    pub(crate) fn new(memory: Arc<BufferMemory>) -> Self {
        Self {
            state: Mutex::default(),
            arrived: Notify::new(),
            memory,
        }
    }

    /// Drops all messages, and any that arrive later.
    pub(crate) fn close(&self) {
        self.lock().close(&self.memory);
    }

    /// Adds a message.
    pub(crate) fn push(&self, frame: Frame, limit: &OutputLimit, now_ms: i64) -> Pushed {
        let mut state = self.lock();
        if state.is_closed {
            return Pushed::Queued;
        }
        let was_empty = state.frames.is_empty();
        state.bytes += frame.size_bytes();
        state.frames.push_back(frame);
        self.memory.replace(0, frames_bytes(1));
        if state.exceeds(limit, now_ms) {
            state.close(&self.memory);
            return Pushed::Overflowed;
        }
        drop(state);
        if was_empty {
            self.arrived.notify_one();
        }
        Pushed::Queued
    }

    /// Whether the soft limit was exceeded for too long. If so, closes the mailbox.
    pub(crate) fn is_overdue(&self, limit: &OutputLimit, now_ms: i64) -> bool {
        let mut state = self.lock();
        let is_overdue = state.above_soft_since_ms.is_some() && state.exceeds(limit, now_ms);
        if is_overdue {
            state.close(&self.memory);
        }
        is_overdue
    }

    /// The number of messages that wait, and their bytes.
    pub(crate) fn waiting(&self) -> (usize, u64) {
        let state = self.lock();
        (state.frames.len(), state.bytes)
    }

    /// Waits until there is a message.
    pub(crate) async fn ready(&self) {
        while self.lock().frames.is_empty() {
            self.arrived.notified().await;
        }
    }

    /// Moves the oldest messages to `output`: at most `count_max`, until it holds `output_bytes_max`
    /// bytes. Returns their number. `is_subscriber`: the client has subscriptions.
    pub(crate) fn take(
        &self,
        output: &mut BytesMut,
        (protocol, is_subscriber): (Protocol, bool),
        count_max: usize,
        output_bytes_max: usize,
    ) -> usize {
        let mut state = self.lock();
        let mut count = 0;
        while count < count_max && output.len() < output_bytes_max {
            let Some(frame) = state.frames.pop_front() else {
                break;
            };
            count += 1;
            state.bytes = state.bytes.saturating_sub(frame.size_bytes());
            frame.put(protocol, is_subscriber, output);
        }
        self.memory.replace(frames_bytes(count), 0);
        if state.frames.is_empty() && state.frames.capacity() > IDLE_MESSAGES_MAX {
            state.frames = VecDeque::new();
        }
        count
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The memory of all clients together: what connections report, and the bytes of waiting messages.
#[derive(Debug, Default)]
pub(crate) struct BufferMemory(AtomicUsize);

impl BufferMemory {
    /// The number of bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Notes that a buffer that took `before` bytes takes `now`.
    pub(crate) fn replace(&self, before: usize, now: usize) {
        // Wrapping is correct: each part is subtracted as it was added.
        if before != now {
            self.0
                .fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
        }
    }
}

/// Bytes with several owners. They count once, until the last owner drops them.
struct SharedBytes {
    bytes: Vec<u8>,
    memory: Arc<BufferMemory>,
}

impl SharedBytes {
    fn new(bytes: Vec<u8>, memory: Arc<BufferMemory>) -> Self {
        memory.replace(0, bytes.capacity());
        Self { bytes, memory }
    }
}

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for SharedBytes {
    fn drop(&mut self) {
        self.memory.replace(self.bytes.capacity(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(payload: &'static str) -> Frame {
        let message = Message {
            kind: ChannelKind::Global,
            channel: Bytes::from_static(b"c"),
            payload: Bytes::from_static(payload.as_bytes()),
        };
        Frame::message(&message, &Arc::default())
    }

    fn taken(mailbox: &Mailbox, protocol: Protocol, count: usize) -> String {
        let mut output = BytesMut::new();
        mailbox.take(&mut output, (protocol, true), count, usize::MAX);
        String::from_utf8(output.to_vec()).unwrap()
    }

    const NO_LIMIT: OutputLimit = OutputLimit {
        hard_bytes: 0,
        soft_bytes: 0,
        soft_s: 0,
    };

    #[test]
    fn messages_are_taken_in_order_and_in_the_protocol_of_the_moment() {
        let mailbox = Mailbox::default();
        mailbox.push(frame("one"), &NO_LIMIT, 0);
        mailbox.push(frame("two"), &NO_LIMIT, 0);
        assert_eq!(
            taken(&mailbox, Protocol::Resp2, 1),
            "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\none\r\n"
        );
        assert_eq!(
            taken(&mailbox, Protocol::Resp3, 9),
            ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\ntwo\r\n"
        );
        assert_eq!(mailbox.waiting(), (0, 0));
    }

    #[test]
    fn a_client_gets_of_changed_keys_what_its_protocol_can_say() {
        let memory = Arc::default();
        let (a, b) = (Bytes::from("a"), Bytes::from("b"));
        let names = Frame::invalidation(Some(&[&a, &b]), &memory);
        let all = Frame::invalidation(None, &memory);
        let said = |frame: &Frame, protocol, is_subscriber| {
            let mut output = BytesMut::new();
            frame.put(protocol, is_subscriber, &mut output);
            String::from_utf8(output.to_vec()).unwrap()
        };
        let channel = "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n";
        for (frame, resp2, resp3) in [
            (
                &names,
                "*2\r\n$1\r\na\r\n$1\r\nb\r\n",
                "*2\r\n$1\r\na\r\n$1\r\nb\r\n",
            ),
            (&all, "$-1\r\n", "_\r\n"),
        ] {
            let push = format!(">2\r\n$10\r\ninvalidate\r\n{resp3}");
            assert_eq!(said(frame, Protocol::Resp3, false), push);
            assert_eq!(said(&frame.redirected(), Protocol::Resp3, true), push);
            assert_eq!(said(frame, Protocol::Resp2, true), "");
            assert_eq!(said(&frame.redirected(), Protocol::Resp2, false), "");
            let message = format!("{channel}{resp2}");
            assert_eq!(said(&frame.redirected(), Protocol::Resp2, true), message);
        }
        let broken = Frame::broken_redirect(7, &memory);
        assert_eq!(said(&broken, Protocol::Resp2, true), "");
        let push = ">2\r\n$21\r\ntracking-redir-broken\r\n:7\r\n";
        assert_eq!(said(&broken, Protocol::Resp3, false), push);
    }

    #[test]
    fn the_bytes_of_a_message_count_once_until_the_last_has_taken_it() {
        let memory = Arc::<BufferMemory>::default();
        let mailboxes = [(); 3].map(|()| Mailbox::new(Arc::clone(&memory)));
        let message = Message {
            kind: ChannelKind::Global,
            channel: Bytes::from_static(b"c"),
            payload: Bytes::from(vec![b'x'; 100_000]),
        };
        let frame = Frame::message(&message, &memory);
        for mailbox in &mailboxes {
            mailbox.push(frame.clone(), &NO_LIMIT, 0);
        }
        drop(frame);
        let held = memory.bytes();
        assert!((100_000..110_000).contains(&held), "{held}");
        let [taking, closed, dropped] = mailboxes;
        taken(&taking, Protocol::Resp2, 1);
        closed.close();
        assert!(memory.bytes() > 100_000);
        drop(dropped);
        assert_eq!(memory.bytes(), 0);
    }

    #[test]
    fn messages_are_taken_until_the_output_is_full() {
        let mailbox = Mailbox::default();
        for _ in 0..3 {
            mailbox.push(frame("one"), &NO_LIMIT, 0);
        }
        let mut output = BytesMut::new();
        assert_eq!(mailbox.take(&mut output, (Protocol::Resp2, true), 9, 40), 2);
        assert_eq!(mailbox.waiting().0, 1);
    }

    #[test]
    fn the_hard_limit_drops_everything_for_good() {
        let mailbox = Mailbox::default();
        let limit = OutputLimit {
            hard_bytes: 2 * frame("one").size_bytes(),
            ..NO_LIMIT
        };
        assert_eq!(mailbox.push(frame("one"), &limit, 0), Pushed::Queued);
        assert_eq!(mailbox.push(frame("two"), &limit, 0), Pushed::Overflowed);
        assert_eq!(mailbox.waiting(), (0, 0));
        mailbox.push(frame("one"), &limit, 0);
        assert_eq!(mailbox.waiting(), (0, 0));
    }

    #[test]
    fn the_soft_limit_may_be_exceeded_for_its_time() {
        let mailbox = Mailbox::default();
        let limit = OutputLimit {
            soft_bytes: 1,
            soft_s: 2,
            ..NO_LIMIT
        };
        assert_eq!(mailbox.push(frame("one"), &limit, 1000), Pushed::Queued);
        assert!(!mailbox.is_overdue(&limit, 3000));
        assert_eq!(mailbox.push(frame("one"), &limit, 3000), Pushed::Queued);
        assert!(mailbox.is_overdue(&limit, 3001));
    }

    #[test]
    fn who_reads_in_time_may_exceed_the_soft_limit_again() {
        let mailbox = Mailbox::default();
        let limit = OutputLimit {
            soft_bytes: 2 * frame("one").size_bytes(),
            soft_s: 2,
            ..NO_LIMIT
        };
        mailbox.push(frame("one"), &limit, 1000);
        mailbox.push(frame("one"), &limit, 1000);
        taken(&mailbox, Protocol::Resp2, 2);
        mailbox.push(frame("one"), &limit, 2000);
        assert_eq!(mailbox.push(frame("one"), &limit, 3500), Pushed::Queued);
        assert!(!mailbox.is_overdue(&limit, 5000));
    }

    #[tokio::test]
    async fn a_message_wakes_who_waits_for_one() {
        let mailbox = Mailbox::default();
        tokio::join!(mailbox.ready(), async {
            tokio::task::yield_now().await;
            mailbox.push(frame("one"), &NO_LIMIT, 0);
        });
    }
}
