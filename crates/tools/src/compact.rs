//! `quoin compact`: returns the free space in a stopped store's data file to the disk.
//! docs/operate/operations.md is its manual.

use std::fmt;
use std::path::PathBuf;

use crate::progress::ProgressLine;
use quoin_base::size::{counted, size};
use quoin_config::{LoadedSettings, StoreKind};
use quoin_store_embedded::{Compacted, EmbeddedOptions, OpenError, Written};

/// Why nothing was compacted. The store is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum CompactError {
    /// The store cannot be opened, or there is no room for the new file.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A cluster manages its own files.
    #[error("only an embedded store can be compacted, but the setting store is fdb")]
    NotEmbedded,
}

/// The result.
#[derive(Debug)]
pub struct Report {
    folder: PathBuf,
    compacted: Compacted,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Compacted {
            rows,
            bytes_before,
            bytes_after,
        } = self.compacted;
        write!(
            f,
            "{}: {}, data file {} before and {} now: {} freed",
            self.folder.display(),
            counted(rows, "row", "rows"),
            size(bytes_before),
            size(bytes_after),
            size(bytes_before.saturating_sub(bytes_after))
        )
    }
}

/// Compacts the configured store. Shows the progress on standard error if that is a terminal.
///
/// # Errors
/// See [`CompactError`].
pub fn run(loaded: &LoadedSettings) -> Result<Report, CompactError> {
    let settings = &loaded.settings;
    if settings.store != StoreKind::Embedded {
        return Err(CompactError::NotEmbedded);
    }
    let options = EmbeddedOptions {
        accepts_copy: settings.accept_copied_data_dir,
        ..EmbeddedOptions::default()
    };
    let line = ProgressLine::new();
    let mut show = |rows: u64, written: Written| {
        if line.is_terminal() {
            let percent = written.rows.saturating_mul(100) / rows.max(1);
            line.show(|| format!("written: {}%", percent.min(100)));
        }
    };
    let compacted = quoin_store_embedded::compact(&settings.data_dir, &options, &mut show);
    line.clear();
    Ok(Report {
        folder: settings.data_dir.clone(),
        compacted: compacted?,
    })
}
