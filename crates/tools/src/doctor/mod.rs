//! `quoin doctor`: looks whether a store is as it should be, and with `--repair` puts right what
//! can be put right while servers run. docs/operate/doctor.md is its manual.
//!
//! The store is looked at from outside: no server is needed, and on a cluster none is disturbed. An
//! embedded store that a server has open cannot be looked at; [`running`] asks that server.
//! [`embedded`] and `fdb` look at what is special to a store before they open it, [`checks`] at
//! what lies in it.

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
use fdb::look as look_at_cluster;

/// Looks at the store that the settings name, or asks the server that has it open (`beside`), shows each line when it is known, and answers how
/// bad the worst is.
///
/// # Errors
/// Where the operating system does not let it work at all. What is wrong with the store is in
/// the lines.
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
            StoreKind::Embedded => embedded::look(loaded, options, beside, &mut show).await,
            StoreKind::Fdb => look_at_cluster(loaded, options, &mut show).await,
        }
    });
    Ok(worst)
}

#[cfg(not(feature = "fdb"))]
async fn look_at_cluster(_: &LoadedSettings, _: Options, show: &mut dyn FnMut(&Line)) {
    let text = "this quoin was built without FoundationDB: build it with --features fdb";
    show(&Line::new(Level::Fail, "store", text));
}
