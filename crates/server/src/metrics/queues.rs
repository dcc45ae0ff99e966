//! Metrics of the keys that the setting `metrics-keys` names.
//!
//! The keys are read in rounds in the background, so that a reader of metrics costs the store nothing. A
//! round scans a bounded number of names, in the order of SCAN, and the next round continues there. It
//! reads only the elements at the ends. A key that was found stays shown, with a length of 0 after it is
//! gone, until its place is needed. So a queue does not disappear when it is empty.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::metrics::ages::Ages;
use crate::metrics::writer::Writer;
use crate::state::ServerState;
use quoin_base::glob::{Case, matches};
use quoin_base::limits::{
    KEY_READS_AT_ONCE, METRICS_KEY_NAME_BYTES_MAX, METRICS_KEYS_INTERVAL, METRICS_KEYS_MAX,
    METRICS_NAMES_PER_ROUND_MAX,
};
use quoin_base::log_throttle::LogThrottle;
use quoin_config::KeysPattern;
use quoin_data::keyspace::figures::KeyFigures;
use quoin_data::keyspace::kind::TypeKind;
use quoin_data::keyspace::scanning::{ScanQuery, TypeFilter, name_pattern};
use quoin_engine::JobError;

/// Names that one read scans. It is small, so that reads of clients do not wait long.
const NAMES_PER_READ: usize = 500;
/// The next scan of all names begins after this number of times the duration of the last one.
const PASS_REST_FACTOR: u32 = 10;

/// The result of the last round.
#[derive(Debug, Default)]
pub(super) struct WatchedKeys(Mutex<Arc<Shown>>);

/// The figures that are shown until the next round ends.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// Database, name and figures of each key.
    pub(super) keys: Vec<(u32, Bytes, KeyFigures)>,
    /// Number of matching keys that are not shown.
    left_out: usize,
    /// When they were read. `None` if no keys are named, or before the first round.
    read_at: Option<Instant>,
}

impl WatchedKeys {
    /// The result of the last round.
    pub(super) fn shown(&self) -> Arc<Shown> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn show(&self, shown: Shown) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(shown);
    }

    /// Runs rounds until it is dropped.
    pub(super) async fn run(&self, state: &ServerState) {
        let mut rounds = Rounds::default();
        let failed = LogThrottle::new();
        let mut ticks = tokio::time::interval(METRICS_KEYS_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            rounds.take_patterns(state.config.settings().metrics_keys);
            if rounds.patterns.is_empty() {
                self.show(Shown::default());
                continue;
            }
            match rounds.round(state).await {
                Ok(()) => self.show(rounds.shown()),
                Err(JobError::Stopped) => return,
                // The last result stays, and its age grows.
                Err(JobError::Failed(error)) => {
                    if let Some(more) = failed.pass() {
                        let error = error.to_line();
                        tracing::warn!("cannot read the keys of metrics-keys: {error}{more}");
                    }
                }
            }
        }
    }
}

/// The state between rounds.
#[derive(Debug, Default)]
struct Rounds {
    patterns: Vec<KeysPattern>,
    /// Watched keys by database and name.
    watched: BTreeMap<(u32, Bytes), Watched>,
    pass: Pass,
    /// Number of keys without a place in the last complete scan.
    left_out: usize,
}

#[derive(Debug, Default)]
struct Watched {
    /// Whether the setting names it literally.
    is_named: bool,
    /// The last figures.
    figures: Option<KeyFigures>,
    is_there: bool,
    ages: Ages,
}

/// A scan of all names.
#[derive(Debug, Default)]
struct Pass {
    /// The index of the pattern.
    pattern: usize,
    /// SCAN's cursor.
    cursor: u64,
    left_out: usize,
    took: Duration,
    /// When the next scan begins.
    rests_until: Option<Instant>,
}

impl Rounds {
    fn take_patterns(&mut self, patterns: Vec<KeysPattern>) {
        if patterns == self.patterns {
            return;
        }
        self.patterns = patterns;
        self.pass = Pass::default();
        self.left_out = 0;
        let patterns = &self.patterns;
        self.watched.retain(|(database, name), watched| {
            watched.is_named = false;
            patterns
                .iter()
                .any(|pattern| is_match(pattern, *database, name))
        });
        for index in 0..self.patterns.len() {
            let Some(pattern) = self.patterns.get(index).filter(|one| one.is_name()) else {
                continue;
            };
            let name = Bytes::copy_from_slice(pattern.pattern.as_bytes());
            let database = pattern.database;
            if let Some(watched) = self.place(database, name) {
                watched.is_named = true;
            }
        }
    }

    /// The place of a key. If there is none left, a key that is gone loses its place.
    fn place(&mut self, database: u32, name: Bytes) -> Option<&mut Watched> {
        let key = (database, name);
        if !self.watched.contains_key(&key) {
            let is_long = key.1.len() > METRICS_KEY_NAME_BYTES_MAX;
            if is_long || (self.watched.len() >= METRICS_KEYS_MAX && !self.forget_one()) {
                return None;
            }
        }
        Some(self.watched.entry(key).or_default())
    }

    fn forget_one(&mut self) -> bool {
        let mut gone = self.watched.iter();
        let gone = gone.find(|(_, watched)| !watched.is_there && !watched.is_named);
        let gone = gone.map(|(key, _)| key.clone());
        gone.is_some_and(|key| self.watched.remove(&key).is_some())
    }

    async fn round(&mut self, state: &ServerState) -> Result<(), JobError> {
        self.find_names(state).await?;
        let keys: Vec<(u32, Bytes)> = self.watched.keys().cloned().collect();
        for group in keys.chunk_by(|one, other| one.0 == other.0) {
            for some in group.chunks(KEY_READS_AT_ONCE) {
                let database = some.first().map_or(0, |key| key.0);
                let names: Arc<[Bytes]> = some.iter().map(|key| key.1.clone()).collect();
                let now_ms = state.clock.now_ms();
                let figures = read_figures(state, database, Arc::clone(&names)).await?;
                for (name, figures) in names.iter().zip(figures) {
                    if let Some(watched) = self.watched.get_mut(&(database, name.clone())) {
                        watched.found(figures, now_ms);
                    }
                }
            }
        }
        Ok(())
    }

    /// Continues the scan of all names.
    async fn find_names(&mut self, state: &ServerState) -> Result<(), JobError> {
        let is_resting = |until: Instant| Instant::now() < until;
        if self.pass.rests_until.is_some_and(is_resting) {
            return Ok(());
        }
        self.pass.rests_until = None;
        let mut names_left = METRICS_NAMES_PER_ROUND_MAX;
        while let Some(pattern) = self.patterns.get(self.pass.pattern).cloned() {
            if pattern.is_name() {
                self.pass.pattern += 1;
                continue;
            }
            if names_left == 0 {
                return Ok(());
            }
            let count = NAMES_PER_READ.min(names_left);
            names_left -= count;
            let glob = Bytes::from(pattern.pattern);
            let query = ScanQuery {
                cursor: self.pass.cursor,
                count,
                pattern: name_pattern(&glob),
                types: TypeFilter::Any,
            };
            let begun = Instant::now();
            let (cursor, names) = state
                .executor
                .read(pattern.database, move |context| {
                    let query = query.clone();
                    Box::pin(async move { Ok(context.scan_keys(&query).await?) })
                })
                .await?;
            self.pass.took += begun.elapsed();
            for name in names {
                let has_place = self.place(pattern.database, name).is_some();
                self.pass.left_out += usize::from(!has_place);
            }
            self.pass.cursor = cursor;
            self.pass.pattern += usize::from(cursor == 0);
        }
        self.left_out = self.pass.left_out;
        let rest = self.pass.took * PASS_REST_FACTOR;
        self.pass = Pass {
            rests_until: Instant::now().checked_add(rest),
            ..Pass::default()
        };
        Ok(())
    }

    fn shown(&self) -> Shown {
        let keys = self
            .watched
            .iter()
            .filter_map(|((database, name), watched)| {
                Some((*database, name.clone(), watched.figures.clone()?))
            });
        Shown {
            keys: keys.collect(),
            left_out: self.left_out,
            read_at: Some(Instant::now()),
        }
    }
}

impl Watched {
    fn found(&mut self, figures: Option<KeyFigures>, now_ms: i64) {
        self.is_there = figures.is_some();
        if let Some(mut figures) = figures {
            self.ages.date(&mut figures, now_ms);
            self.figures = Some(figures);
            return;
        }
        self.ages = Ages::default();
        for state in self.figures.iter_mut().flat_map(|last| &mut last.states) {
            (state.length, state.since_ms) = (0, None);
        }
    }
}

fn is_match(pattern: &KeysPattern, database: u32, name: &[u8]) -> bool {
    pattern.database == database && matches(pattern.pattern.as_bytes(), name, Case::Sensitive)
}

async fn read_figures(
    state: &ServerState,
    database: u32,
    names: Arc<[Bytes]>,
) -> Result<Vec<Option<KeyFigures>>, JobError> {
    let read = state.executor.read(database, move |context| {
        let names = Arc::clone(&names);
        Box::pin(async move {
            let reads = names.iter().map(|name| context.key_figures(name));
            Ok(futures_util::future::try_join_all(reads).await?)
        })
    });
    read.await
}

/// Labels of one state of one key.
type Labels = [(&'static str, String); 4];

/// Writes the metrics of watched keys, as of the last round.
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
        "Elements of the keys in metrics-keys, by state",
        lengths.into_iter(),
    )?;
    writer.gauges(
        "queue_oldest_age_seconds",
        "How long, at least, the oldest element has been in its state",
        ages.into_iter(),
    )?;
    writer.gauge(
        "queue_keys_left_out",
        "Keys in metrics-keys that are not shown, because there are too many",
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
pub(super) fn label(name: &Bytes) -> String {
    match std::str::from_utf8(name) {
        Ok(text) => text.to_owned(),
        Err(_) => name.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quoin_data::keyspace::figures::StateFigures;
    use quoin_layout::ValueType;

    fn rounds(patterns: &[(u32, &str)]) -> Rounds {
        let mut rounds = Rounds::default();
        rounds.take_patterns(pattern_list(patterns));
        rounds
    }

    fn pattern_list(patterns: &[(u32, &str)]) -> Vec<KeysPattern> {
        let patterns = patterns.iter().map(|(database, pattern)| KeysPattern {
            database: *database,
            pattern: (*pattern).to_owned(),
        });
        patterns.collect()
    }

    fn figures(length: i64) -> Option<KeyFigures> {
        Some(KeyFigures {
            value_type: ValueType::List,
            states: vec![StateFigures {
                state: "ready",
                length,
                since_ms: Some(1),
                spans: Vec::new(),
            }],
        })
    }

    #[test]
    fn a_key_that_is_gone_is_shown_with_nothing_in_it() {
        let mut rounds = rounds(&[(0, "mail")]);
        assert!(rounds.shown().keys.is_empty());
        let key = (0, Bytes::from("mail"));
        rounds.watched.get_mut(&key).unwrap().found(figures(3), 0);
        rounds.watched.get_mut(&key).unwrap().found(None, 0);
        let shown = rounds.shown();
        assert_eq!(shown.keys[0].2.states[0].length, 0);
        assert_eq!(shown.keys[0].2.states[0].since_ms, None);
    }

    #[test]
    fn places_are_few_and_keys_that_are_gone_give_theirs_up() {
        let mut rounds = rounds(&[(0, "*"), (0, "mail")]);
        for number in 1..METRICS_KEYS_MAX {
            let name = Bytes::from(number.to_string());
            rounds.place(0, name).unwrap().found(figures(1), 0);
        }
        assert!(rounds.place(0, Bytes::from("more")).is_none());
        let key = (0, Bytes::from("7"));
        rounds.watched.get_mut(&key).unwrap().found(None, 0);
        assert!(rounds.place(0, Bytes::from("more")).is_some());
        assert!(!rounds.watched.contains_key(&key));
        let long = Bytes::from(vec![b'x'; METRICS_KEY_NAME_BYTES_MAX + 1]);
        assert!(Rounds::default().place(0, long).is_none());
    }

    #[test]
    fn keys_that_no_pattern_names_any_more_are_forgotten() {
        let mut rounds = rounds(&[(0, "a*"), (1, "b")]);
        rounds.place(0, Bytes::from("a1")).unwrap();
        rounds.take_patterns(pattern_list(&[(0, "*1")]));
        let keys: Vec<_> = rounds.watched.keys().cloned().collect();
        assert_eq!(keys, [(0, Bytes::from("a1"))]);
    }
}
