//! MONITOR: clients that see every command of the others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;

use crate::audit::without_secrets;
use crate::clients::{ClientRecord, Delivery, Frame};
use quoin_base::clock::Clock;
use quoin_data::command::flags::Flags;
use quoin_data::command::row::Row;

/// The clients that monitor this server.
pub(super) struct Monitors {
    clients: RwLock<Vec<Arc<ClientRecord>>>,
    /// Whether there is any. Other clients pay only for reading this flag.
    is_any: AtomicBool,
    delivery: Arc<Delivery>,
    clock: Arc<dyn Clock>,
}

impl Monitors {
    /// Without monitors.
    pub(super) fn new(delivery: Arc<Delivery>, clock: Arc<dyn Clock>) -> Self {
        Self {
            clients: RwLock::default(),
            is_any: AtomicBool::new(false),
            delivery,
            clock,
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        !self.is_any.load(Ordering::Acquire)
    }

    /// Starts showing commands to a client.
    pub(super) fn add(&self, client: &Arc<ClientRecord>) {
        client.set_monitor(true);
        let mut clients = self.clients.write().unwrap_or_else(PoisonError::into_inner);
        clients.push(Arc::clone(client));
        self.is_any.store(true, Ordering::Release);
    }

    /// Stops showing commands to a client.
    pub(super) fn remove(&self, client: &ClientRecord) {
        if !client.is_monitor() {
            return;
        }
        client.set_monitor(false);
        let mut clients = self.clients.write().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|one| one.id != client.id);
        self.is_any.store(!clients.is_empty(), Ordering::Release);
    }

    /// Shows a command of a client of `database`. Commands of administrators are not shown, as in
    /// Redis.
    pub(super) fn note(
        &self,
        row: &Row,
        database: u32,
        client: &ClientRecord,
        arguments: &[Bytes],
    ) {
        if self.is_empty() || row.flags.contains(Flags::ADMIN) {
            return;
        }
        let origin = match client.address.unix_path() {
            Some(path) => format!("unix:{path}"),
            None => client.address.to_string(),
        };
        self.show(row, database, &origin, arguments);
    }

    /// Shows a command that a script has called.
    pub(super) fn note_script(&self, row: &Row, database: u32, arguments: &[Bytes]) {
        self.show(row, database, "lua", arguments);
    }

    fn show(&self, row: &Row, database: u32, origin: &str, arguments: &[Bytes]) {
        if self.is_empty() || row.flags.contains(Flags::ADMIN) {
            return;
        }
        let line = line(self.clock.now_us(), database, origin, arguments);
        let frame = Frame::line(line, self.delivery.memory());
        let clients = self.clients.read().unwrap_or_else(PoisonError::into_inner);
        for client in clients.iter() {
            self.delivery.push(client, &frame);
        }
    }
}

/// `+<seconds>.<microseconds> [<database> <address>] "<argument>" …`
fn line(now_us: i64, database: u32, origin: &str, arguments: &[Bytes]) -> Vec<u8> {
    let (seconds, micros) = (now_us.div_euclid(1_000_000), now_us.rem_euclid(1_000_000));
    let mut line = format!("+{seconds}.{micros:06} [{database} {origin}]").into_bytes();
    for argument in without_secrets(arguments).iter() {
        line.extend_from_slice(b" \"");
        put_quoted(argument, &mut line);
        line.push(b'"');
    }
    line.extend_from_slice(b"\r\n");
    line
}

/// Appends bytes as Redis's `sdscatrepr` shows them.
fn put_quoted(bytes: &[u8], line: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            b'\\' | b'"' => line.extend_from_slice(&[b'\\', *byte]),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            b'\t' => line.extend_from_slice(b"\\t"),
            0x07 => line.extend_from_slice(b"\\a"),
            0x08 => line.extend_from_slice(b"\\b"),
            b' '..=b'~' => line.push(*byte),
            _ => line.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
}
