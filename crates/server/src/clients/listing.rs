//! The line of a client in CLIENT LIST. The log shows it too.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use crate::clients::record::{ClientDetails, ClientRecord, Scope};
use quoin_base::limits::{LOG_TEXT_BYTES_MAX, UNCOUNTED_OUTPUT_BYTES};
use quoin_base::redis_version::RedisVersion;
use quoin_data::table;

/// The line of a client, for the log and for ACL LOG. Names that the client has given itself may be cut.
pub(crate) fn describe(client: &ClientRecord, now_ms: i64) -> String {
    let mut text = String::new();
    put(
        client,
        now_ms,
        RedisVersion::default(),
        LOG_TEXT_BYTES_MAX,
        &mut text,
    );
    text.truncate(text.trim_end().len());
    text
}

/// Appends the line of a client, with all fields of the configured version of Redis, in Redis's
/// order.
///
/// `tot-mem` counts all memory held for the client, like `maxmemory-clients`. `events` is always
/// `r`. There is one reply buffer: `obl` is what Redis would have in its first 16 KiB, and `omem`
/// is the rest plus waiting messages.
pub(crate) fn put_line(
    client: &ClientRecord,
    now_ms: i64,
    reported: RedisVersion,
    text: &mut String,
) {
    put(client, now_ms, reported, usize::MAX, text);
}

/// The flags of a client, as letters.
pub(crate) fn flags_of(client: &ClientRecord) -> String {
    flags(client, &client.details().clone())
}

fn flags(client: &ClientRecord, details: &ClientDetails) -> String {
    let mut flags = String::new();
    let is_touched = details
        .watched
        .as_ref()
        .is_some_and(|touched| touched.load(Ordering::SeqCst));
    for (is_set, letter) in [
        (client.is_monitor(), 'O'),
        (client.is_subscriber(), 'P'),
        (details.queued_commands.is_some(), 'x'),
        (client.is_blocked(), 'b'),
        (details.tracking.is_some(), 't'),
        (details.has_broken_redirect, 'R'),
        (details.tracking.is_some_and(|mode| mode.is_broadcast), 'B'),
        (is_touched, 'd'),
        (client.is_killed(), 'A'),
        (client.address.unix_path().is_some(), 'U'),
        (details.no_evict, 'e'),
        (details.no_touch, 'T'),
    ] {
        if is_set {
            flags.push(letter);
        }
    }
    if flags.is_empty() {
        flags.push('N');
    }
    flags
}

fn put(
    client: &ClientRecord,
    now_ms: i64,
    reported: RedisVersion,
    attribute_bytes_max: usize,
    text: &mut String,
) {
    let now_s = now_ms / 1000;
    let details = client.details().clone();
    let flags = flags(client, &details);
    let input = client.input_bytes.load(Ordering::Relaxed);
    let input_free = client.input_free_bytes.load(Ordering::Relaxed);
    let output = client.output_bytes.load(Ordering::Relaxed);
    let unsent = client.output_unsent_bytes.load(Ordering::Relaxed);
    let arguments = client.argument_bytes.load(Ordering::Relaxed);
    let transaction = client.transaction_bytes.load(Ordering::Relaxed);
    let (messages, message_bytes) = client.mailbox.waiting();
    let counted = unsent.saturating_sub(UNCOUNTED_OUTPUT_BYTES);
    let unsent = unsent - counted;
    let waiting = messages + usize::from(counted > 0);
    let waiting_bytes = message_bytes + counted as u64;
    let command = table::of_all_ports()
        .get(client.shown_command())
        .map_or("NULL", |row| row.name);
    let user = client.user();
    let user = String::from_utf8_lossy(user.name());
    let (mut watch, mut totals) = (String::new(), String::new());
    if reported >= RedisVersion::V8_4 {
        watch = format!(" watch={}", details.watched_keys);
        totals = format!(
            " io-thread=0 tot-net-in={} tot-net-out={} tot-cmds={}",
            client.read_bytes.load(Ordering::Relaxed),
            client.written_bytes.load(Ordering::Relaxed),
            client.commands.load(Ordering::Relaxed),
        );
    }
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={flags} db={} sub={} psub={} \
         ssub={} multi={}{watch} qbuf={input} qbuf-free={input_free} argv-mem={arguments} multi-mem={transaction} \
         rbs={output} rbp={output} obl={unsent} oll={waiting} omem={waiting_bytes} tot-mem={} events=r cmd={command} user={user} \
         redir={} resp={} lib-name={} lib-ver={}{totals}",
        client.id,
        client.address,
        client.local_address,
        client.file_descriptor,
        cut(&details.name, attribute_bytes_max),
        (now_s - client.connected_ms / 1000).max(0),
        (now_s - client.last_interaction_ms.load(Ordering::Relaxed) / 1000).max(0),
        details.database,
        client.subscribed(Scope::Channel),
        client.subscribed(Scope::Pattern),
        client.subscribed(Scope::Shard),
        details.queued_commands.unwrap_or(-1),
        client.memory_bytes(),
        details
            .tracking
            .map_or(-1, |mode| i64::try_from(mode.redirect).unwrap_or(i64::MAX)),
        details.protocol,
        cut(&details.library_name, attribute_bytes_max),
        cut(&details.library_version, attribute_bytes_max),
    );
}

/// The beginning of an attribute of a client, which is ASCII.
pub(crate) fn cut(attribute: &str, bytes_max: usize) -> &str {
    attribute.get(..bytes_max).unwrap_or(attribute)
}
