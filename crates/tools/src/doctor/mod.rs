//! `quoin doctor`: checks a store, and with `--repair` repairs what can be repaired while servers
//! run. docs/operate/doctor.md is its manual.
//!
//! The doctor needs no server, and disturbs none on a cluster. It cannot read an embedded store
//! that a server has open, so [`running`] asks that server. [`embedded`] and `fdb` check what is
//! specific to a store before they open it. [`checks`] checks the data in it.

mod checks;
mod embedded;
pub(super) mod examine;
#[cfg(feature = "fdb")]
mod fdb;
mod report;
mod running;
mod target;

#[cfg(test)]
mod tests;

pub use examine::Options;
pub use report::{Level, Line};

use std::io;

use quoin_client::Beside;
use quoin_config::{LoadedSettings, StoreKind};

#[cfg(feature = "fdb")]
use fdb::check as check_cluster;

/// Checks the configured store, or asks the server that has it open (`beside`). Shows each line as
/// soon as it is known, and returns the worst level.
///
/// # Errors
/// If the operating system does not let it work at all. Problems of the store are in the lines.
pub fn run(
    loaded: &LoadedSettings,
    options: Options,
    beside: &Beside,
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
            StoreKind::Embedded => embedded::check(loaded, options, beside, &mut show).await,
            StoreKind::Fdb => check_cluster(loaded, options, &mut show).await,
        }
    });
    Ok(worst)
}

#[cfg(not(feature = "fdb"))]
async fn check_cluster(_: &LoadedSettings, _: Options, show: &mut dyn FnMut(&Line)) {
    let text = "this quoin was built without FoundationDB: build it with --features fdb";
    show(&Line::new(Level::Fail, "store", text));
}
