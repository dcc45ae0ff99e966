//! The embedded store as a [`Store`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::snapshot::EmbeddedSnapshot;
use super::store::EmbeddedStore;
use super::transaction::{EmbeddedTransaction, room_for_transaction};
use super::tree::Span;
use quoin_base::counter::Durations;
use quoin_base::limits;
use quoin_store::{
    Capabilities, Growth, ReadTransaction, Store, StoreError, StoreFuture, Transaction, Watched,
};

impl Store for EmbeddedStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "embedded",
            has_other_writers: false,
            reads_wait: false,
            bounds_transaction_time: false,
            clears_ranges_at_once: false,
            has_unknown_results: false,
            batch_bytes_soft_max: limits::EMBEDDED_BATCH_BYTES_SOFT_MAX,
            transaction_bytes_max: limits::EMBEDDED_TRANSACTION_BYTES_MAX,
            key_name_bytes_max: limits::REQUEST_BULK_BYTES_MAX,
            parallel_batches: 1,
        }
    }

    fn begin_read(&self) -> Result<Box<dyn ReadTransaction + '_>, StoreError> {
        self.shared.check()?;
        Ok(Box::new(EmbeddedSnapshot::begin(self)?))
    }

    fn begin_write(&self) -> Result<Box<dyn Transaction + '_>, StoreError> {
        self.shared.check()?;
        Ok(Box::new(EmbeddedTransaction::begin(self)?))
    }

    fn begin_short_read(
        &self,
        waits: bool,
    ) -> Result<Option<Box<dyn ReadTransaction + '_>>, StoreError> {
        self.shared.check()?;
        let begun = match waits {
            true => Some(EmbeddedSnapshot::begin_short(self)),
            false => EmbeddedSnapshot::try_begin_short(self),
        };
        Ok(begun.map(|snapshot| Box::new(snapshot) as Box<dyn ReadTransaction + '_>))
    }

    fn begin_short_write(&self) -> Result<Box<dyn Transaction + '_>, StoreError> {
        self.shared.check()?;
        Ok(Box::new(EmbeddedTransaction::begin_short(self)?))
    }

    fn note_empty(&self, begin: &[u8], end: &[u8]) {
        let _writer = self.shared.writer.lock();
        let mut live = self.shared.memory.lock();
        live.complete.add(Span { begin, end }, |_| {});
    }

    fn watch<'t>(&'t self, key: &[u8]) -> StoreFuture<'t, Watched> {
        let watched = || {
            self.shared.check()?;
            let changed = self.shared.watches.register(key)?;
            let value = EmbeddedSnapshot::begin(self)?.value(key)?;
            Ok(Watched {
                value,
                changed: Box::pin(changed),
            })
        };
        StoreFuture::ready(watched())
    }

    fn id(&self) -> Option<String> {
        Some(self.summary.id.to_string())
    }

    fn disk_bytes(&self) -> Option<u64> {
        self.environment.real_disk_size().ok()
    }

    fn disk_free_bytes(&self) -> Option<u64> {
        Some(self.shared.room.free_bytes()).filter(|bytes| *bytes != u64::MAX)
    }

    fn disk_used_bytes(&self) -> Option<u64> {
        Some(self.shared.room.used_bytes())
    }

    fn journal_bytes(&self) -> Option<u64> {
        Some(self.journal.recent_bytes())
    }

    fn sync_durations(&self) -> Option<&Durations> {
        Some(self.journal.sync_durations())
    }

    fn is_ready(&self) -> bool {
        // A checkpoint holds the writer's lock while it syncs the journal.
        self.shared.writer.is_free() && room_for_transaction(self).is_there()
    }

    fn growth(&self) -> Growth {
        let bytes_max = self.shared.data_bytes_max.get();
        let bytes_max = bytes_max.map_or(0, |max| max.load(Ordering::Relaxed));
        match bytes_max {
            _ if self.shared.room.is_short() => Growth::DiskFull,
            1.. if self.shared.data_bytes() > bytes_max => Growth::AtBound,
            _ => Growth::Free,
        }
    }

    fn data_bytes(&self) -> Option<u64> {
        Some(self.shared.data_bytes())
    }

    fn bound_data(&self, bytes_max: Arc<AtomicU64>) {
        // A second bound is ignored: there is only one server.
        let _ = self.shared.data_bytes_max.set(bytes_max);
    }

    fn disk_nearly_full_bytes(&self) -> Option<u64> {
        Some(self.shared.room.warning_bytes())
    }
}
