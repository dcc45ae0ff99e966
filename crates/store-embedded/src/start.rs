//! Opens a store.

use std::path::Path;
use std::sync::Arc;

use super::archive::Keeper;
use super::checkpoint::Checkpoint;
use super::checksum::RowFormat;
use super::error::OpenError;
use super::identity::OpenFiles;
use super::journal::Journal;
use super::memory::Memory;
use super::opening::Files;
use super::options::{EmbeddedOptions, FsyncPolicy};
use super::resident::Resident;
use super::shared::Shared;
use super::standby_note::Note;
use super::store::EmbeddedStore;
use super::sync::{self, Syncer};
use super::{in_use, marker, rewrite, room};
use quoin_base::limits;
use quoin_base::random::{Random, SystemRandom};

impl EmbeddedStore {
    /// Opens the store in `folder`. Creates it if it is missing.
    pub fn open(folder: &Path, options: EmbeddedOptions) -> Result<Self, OpenError> {
        Self::open_archived(folder, options, None)
    }

    /// Opens the store with an archive: a folder that keeps every commit, so that a backup can be
    /// brought forward to any later moment.
    pub fn open_archived(
        folder: &Path,
        options: EmbeddedOptions,
        archive: Option<&Path>,
    ) -> Result<Self, OpenError> {
        let (mut store, work, first) = Self::prepare_archived(folder, options, archive)?;
        let syncer = Syncer::start(work, first)
            .map_err(|error| OpenError::of_engine(folder, error.into()))?;
        store.syncer = Some(syncer);
        Ok(store)
    }

    /// Opens the store without an archive, for a test.
    #[cfg(test)]
    pub(super) fn prepare(
        folder: &Path,
        options: EmbeddedOptions,
    ) -> Result<(Self, sync::Work, Checkpoint), OpenError> {
        Self::prepare_archived(folder, options, None)
    }

    /// Opens the store without starting its threads. Returns what the threads need.
    fn prepare_archived(
        folder: &Path,
        options: EmbeddedOptions,
        archive: Option<&Path>,
    ) -> Result<(Self, sync::Work, Checkpoint), OpenError> {
        let mut files = Files::open(folder, &options)?;
        if files.rows.format() == RowFormat::Plain {
            files = rewrite::upgrade(folder, files, &options)?;
        }
        let summary = files.summary(folder)?;
        let Files {
            lock,
            environment,
            rows,
            checkpoints,
            applied,
            guard: first,
            ..
        } = files;
        let refused = |error: heed::Error| OpenError::of_engine(folder, error);
        // Must happen before the journal is overwritten.
        let keeper = archive
            .map(|archive| Keeper::open(archive, summary.id, folder, applied).map(Arc::new))
            .transpose()
            .map_err(|source| OpenError::Archive { source })?;
        // The checkpoint contains the old journal's records.
        let syncs_appends = options.fsync == FsyncPolicy::Always;
        let epoch = SystemRandom.next_u64();
        // An older program would mistake this journal for an empty one, so the format is raised
        // before the journal exists. That comes after everything that may be refused: until then
        // the older program can still open the folder.
        marker::raise_format(folder).map_err(|error| refused(error.into()))?;
        let journal = Journal::create(folder, applied + 1, epoch, syncs_appends)
            .map_err(|error| refused(error.into()))?;
        let journal = Arc::new(journal);
        let first = in_use::note(&environment, &rows, &checkpoints, first).map_err(refused)?;
        let is_empty = rows.is_empty(&environment).map_err(refused)?;
        let resident = Resident::over(applied, is_empty, options.memory_bytes_max);
        let memory = Memory::new(resident, options.memory_bytes_max);
        let shared = Arc::new(Shared::new(memory));
        let data = environment.try_clone_inner_file().map_err(refused)?;
        let files = room::Files::open(folder, data).map_err(|error| refused(error.into()))?;
        let work = sync::Work {
            folder: folder.to_owned(),
            files,
            environment: environment.clone(),
            rows: rows.clone(),
            checkpoints,
            shared: Arc::clone(&shared),
            journal: Arc::clone(&journal),
            keeper: keeper.clone(),
            archiving: None,
        };
        work.measure_room().map_err(refused)?;
        let store = Self {
            syncer: None,
            shipping: None,
            journal,
            rows,
            environment,
            shared,
            folder: folder.to_owned(),
            summary,
            keeper,
            standby: Note::of(folder, options.follows),
            journal_bytes_max: limits::EMBEDDED_JOURNAL_BYTES_MAX,
            _open: OpenFiles::of(folder),
            _lock: lock,
        };
        Ok((store, work, first))
    }
}
