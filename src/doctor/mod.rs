//! `quoin doctor`: looks whether a store is as it should be, and with `--repair` puts right what
//! can be put right while servers run. docs/operate/doctor.md is its manual.
//!
//! The store is looked at from outside: no server is needed, and on a cluster none is disturbed.
//! [`embedded`] and `fdb` look at what is special to a store before they open it, [`checks`] at
//! what lies in it.

mod checks;
mod embedded;
#[cfg(feature = "fdb")]
mod fdb;
mod progress;
mod report;
mod scan;
mod target;

#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::io;
use std::sync::Arc;

use crate::clock::SystemClock;
use crate::config::{LoadedSettings, StoreKind};
use crate::layout::Layout;
use crate::random::SystemRandom;
use crate::store::{Isolation, ReadTransaction, Store, StoreError};

use checks::version::{self, Understanding};
use checks::{STORE_CHECKS, key_checks, scan_keys};
use progress::Progress;
pub use report::{Level, Line};
use target::DoctorTarget;

/// Time for which messages to other servers lie in the store at the most, while servers run.
const MESSAGE_GRACE: std::time::Duration = std::time::Duration::from_secs(15);

/// What `quoin doctor` may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Repair what is wrong.
    pub repairs: bool,
    /// Compare counters and indexes with all elements.
    pub is_deep: bool,
    /// Somebody vouches that no server uses the store.
    pub is_offline: bool,
}

/// Looks at the store that the settings name, shows each line when it is known, and answers how
/// bad the worst is.
///
/// # Errors
/// Where the operating system does not let it work at all. What is wrong with the store is in
/// the lines.
pub fn run(
    loaded: &LoadedSettings,
    options: Options,
    show: &mut dyn FnMut(&Line),
) -> io::Result<Level> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut worst = Level::Ok;
    let mut show = |line: &Line| {
        worst = worst.max(line.level);
        show(line);
    };
    runtime.block_on(async {
        match loaded.settings.store {
            StoreKind::Embedded => embedded::look(loaded, options, &mut show).await,
            StoreKind::Fdb => look_at_cluster(loaded, options, &mut show).await,
        }
    });
    Ok(worst)
}

#[cfg(feature = "fdb")]
use fdb::look as look_at_cluster;

#[cfg(not(feature = "fdb"))]
async fn look_at_cluster(_: &LoadedSettings, _: Options, show: &mut dyn FnMut(&Line)) {
    let text = "this quoin was built without FoundationDB: build it with --features fdb";
    show(&Line::new(Level::Fail, "store", text));
}

/// Looks at what lies in a store that was opened.
async fn look_inside(
    store: &dyn Store,
    loaded: &LoadedSettings,
    options: Options,
    is_offline: bool,
    show: &mut dyn FnMut(&Line),
) {
    let target = DoctorTarget {
        store,
        layout: Layout::new(&loaded.settings.root_prefix),
        clock: Arc::new(SystemClock),
        random: Arc::new(SystemRandom),
        repairs: options.repairs,
        is_deep: options.is_deep,
        is_offline,
        message_grace: MESSAGE_GRACE,
        progress: Progress::new(),
        shown: OnceCell::new(),
    };
    examine(&target, show).await;
}

/// Runs the checks.
async fn examine(target: &DoctorTarget<'_>, show: &mut dyn FnMut(&Line)) {
    let mut show = |line: &Line| {
        target.progress.clear();
        show(line);
    };
    match version::check(target).await {
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
                .shown_namespaces(transaction, Isolation::Snapshot)
                .await
        })
        .await;
    // Where it cannot be read the check of databases says so.
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

/// What is said of a check that the store has not let come to its end.
fn unfinished(check: &'static str, error: &StoreError) -> Line {
    let text = format!("this check has not come to its end: {error}");
    Line::new(Level::Fail, check, text)
}
