//! Runs the checks on an open store, after a check of its layout version.

use std::cell::OnceCell;
use std::sync::Arc;

use super::checks::{STORE_CHECKS, key_checks, scan_keys};
use super::report::{Level, Line};
use super::target::{DoctorTarget, rows};
use crate::progress::ProgressLine;
use quoin_base::clock::SystemClock;
use quoin_base::random::SystemRandom;
use quoin_config::LoadedSettings;
use quoin_layout::{LAYOUT_VERSION, Layout, decode_counter};
use quoin_store::{Isolation, ReadTransaction, Store, StoreError};

/// Longest time that messages to other servers stay in the store while servers run.
const MESSAGE_GRACE: std::time::Duration = std::time::Duration::from_secs(15);

/// What `quoin doctor` may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether to repair what is wrong.
    pub repairs: bool,
    /// Compare counters and indexes with all elements.
    pub is_deep: bool,
    /// Whether the caller guarantees that no server uses the store.
    pub is_offline: bool,
}

/// Who else uses the store, and what the doctor may therefore do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Servers may use it meanwhile.
    Shared,
    /// Nobody else.
    Alone,
    /// Nobody else, and nothing is committed, because a commit would end the standby.
    Standby,
}

/// Checks the data of an open store.
pub(super) async fn check_store(
    store: &dyn Store,
    loaded: &LoadedSettings,
    options: Options,
    access: Access,
    show: &mut dyn FnMut(&Line),
) {
    let target = DoctorTarget {
        store,
        layout: Layout::new(&loaded.settings.root_prefix),
        clock: Arc::new(SystemClock),
        random: Arc::new(SystemRandom),
        repairs: options.repairs,
        is_deep: options.is_deep,
        is_offline: access != Access::Shared,
        is_standby: access == Access::Standby,
        message_grace: MESSAGE_GRACE,
        progress: ProgressLine::new(),
        shown: OnceCell::new(),
    };
    examine(&target, show).await;
}

/// Runs the checks.
pub(super) async fn examine(target: &DoctorTarget<'_>, show: &mut dyn FnMut(&Line)) {
    let mut show = |line: &Line| {
        target.progress.clear();
        show(line);
    };
    match check_version(target).await {
        Ok((understanding, line)) => {
            show(&line);
            if understanding == Understanding::None {
                return;
            }
        }
        Err(error) => return show(&unfinished("layout", &error)),
    }
    let shown = target
        .read(async |transaction: &dyn ReadTransaction| {
            target
                .current_namespaces(transaction, Isolation::Snapshot)
                .await
        })
        .await;
    // If it cannot be read, the check of databases reports it.
    if let Ok(shown) = shown {
        let _ = target.shown.set(shown);
    }
    for check in STORE_CHECKS {
        match (check.run)(target, check.name).await {
            Ok(line) => show(&line),
            Err(error) => show(&unfinished(check.name, &error)),
        }
    }
    let mut checks = key_checks(target);
    match scan_keys(target, &mut checks).await {
        Ok(()) => {
            for check in &checks {
                show(&check.line());
            }
            if !target.is_deep {
                let text = "not counted: --deep compares them with every element (reads all data)";
                show(&Line::ok("counters", text));
            }
        }
        Err(error) => show(&unfinished("keys", &error)),
    }
}

/// The line of a check that a store error has stopped.
pub(super) fn unfinished(check: &'static str, error: &StoreError) -> Line {
    let text = format!("this check did not finish: {error}");
    Line::new(Level::Fail, check, text)
}

const VERSION_CHECK: &str = "layout";

/// What may be done with the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Understanding {
    /// Everything.
    Full,
    /// It is empty.
    Empty,
    /// Nothing: it must not be touched.
    None,
}

/// Checks the layout's version.
async fn check_version(target: &DoctorTarget<'_>) -> Result<(Understanding, Line), StoreError> {
    let layout = &target.layout;
    let everything = layout.everything();
    let (version, first) = target
        .read(async |transaction: &dyn ReadTransaction| {
            let isolation = Isolation::Snapshot;
            let version = transaction.get(&layout.version_key(), isolation).await?;
            let (begin, end) = (&everything.begin, &everything.end);
            Ok((version, rows(transaction, begin, end, 1, isolation).await?))
        })
        .await?;
    let Some(version) = version else {
        return Ok(if first.is_empty() {
            let text = "there is nothing under this root prefix: a server creates a new store here";
            (Understanding::Empty, Line::ok(VERSION_CHECK, text))
        } else {
            let text = "there are rows under this root prefix, but no layout version: another \
                        program keeps its data there - give Quoin its own root prefix";
            (
                Understanding::None,
                Line::new(Level::Fail, VERSION_CHECK, text),
            )
        });
    };
    Ok(match decode_counter(Some(&version)) {
        Err(_) => {
            let text = "the layout version cannot be read: another program keeps its data under \
                        this root prefix, or the row is damaged";
            (
                Understanding::None,
                Line::new(Level::Fail, VERSION_CHECK, text),
            )
        }
        Ok(found) if found > LAYOUT_VERSION => {
            let text = format!(
                "version {found}, but this Quoin supports versions up to {LAYOUT_VERSION}: a \
                 server refuses it - use a newer Quoin"
            );
            (
                Understanding::None,
                Line::new(Level::Fail, VERSION_CHECK, text),
            )
        }
        Ok(found) if found < LAYOUT_VERSION => {
            let text = format!(
                "version {found}, older than {LAYOUT_VERSION}, the version of this \
                                Quoin"
            );
            (
                Understanding::Full,
                Line::new(
                    Level::Warn,
                    VERSION_CHECK,
                    format!("{text} - see CHANGELOG.md"),
                ),
            )
        }
        Ok(found) => (
            Understanding::Full,
            Line::ok(
                VERSION_CHECK,
                format!("version {found}, the version of this Quoin"),
            ),
        ),
    })
}
