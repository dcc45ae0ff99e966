//! Metrics of the keys that the setting `metrics-keys` names.

use std::collections::HashSet;
use std::fmt;
use std::time::Instant;

use bytes::Bytes;

use crate::metrics::queues::WatchedKeys;
use crate::metrics::writer::Writer;
use crate::state::ServerState;
use quoin_data::keyspace::kind::TypeKind;

/// Labels of one state of one key.
type Labels = [(&'static str, String); 4];

/// Writes the metrics of watched keys. They are those of the last round.
pub(super) fn write(
    state: &ServerState,
    keys: &WatchedKeys,
    writer: &mut Writer<'_>,
) -> fmt::Result {
    let shown = keys.shown();
    let Some(read_at) = shown.read_at else {
        return Ok(());
    };
    let now_ms = state.clock.now_ms();
    let mut lengths: Vec<(Labels, f64)> = Vec::new();
    let mut ages: Vec<(Labels, f64)> = Vec::new();
    // A name that is not UTF-8 may look like another one.
    let mut seen = HashSet::new();
    for (database, name, figures) in &shown.keys {
        let key = label(name);
        if !seen.insert((*database, key.clone())) {
            continue;
        }
        for one in &figures.states {
            let labels = || {
                [
                    ("db", database.to_string()),
                    ("key", key.clone()),
                    ("type", figures.value_type.name().to_owned()),
                    ("state", one.state.to_owned()),
                ]
            };
            lengths.push((labels(), one.length as f64));
            if let Some(since_ms) = one.since_ms {
                let age_ms = now_ms.saturating_sub(since_ms).max(0);
                ages.push((labels(), age_ms as f64 / 1e3));
            }
        }
    }
    writer.gauges(
        "queue_length",
        "Elements of the keys that metrics-keys names, by their state",
        lengths.into_iter(),
    )?;
    writer.gauges(
        "queue_oldest_age_seconds",
        "How long, at least, the oldest element has been in its state",
        ages.into_iter(),
    )?;
    writer.gauge(
        "queue_keys_left_out",
        "Keys that metrics-keys names and that are not shown, because there are too many",
        shown.left_out as f64,
    )?;
    let age = Instant::now().saturating_duration_since(read_at);
    writer.gauge(
        "queue_read_age_seconds",
        "Time since these lengths were read",
        age.as_secs_f64(),
    )
}

/// The name of a key as a label.
fn label(name: &Bytes) -> String {
    match std::str::from_utf8(name) {
        Ok(text) => text.to_owned(),
        Err(_) => name.escape_ascii().to_string(),
    }
}
