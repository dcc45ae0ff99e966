//! Scripts in the store: those of SCRIPT LOAD stay, those of EVAL give way to newer ones.

use bytes::{Bytes, BytesMut};

use crate::error::CommandError;
use crate::rows::pages::Pages;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::limits::{SCRIPTS_OF_EVAL_MAX, VALUE_CHUNK_BYTES_MAX};
use quoin_layout::{ScriptOrigin, StoredScript, decode_counter};
use quoin_lua::Script;
use quoin_store::{Growth, Isolation, RangeQuery, StoreError};

/// Scripts that one pass removes.
const REMOVED_PER_PASS_MAX: usize = 500;

impl ReadContext<'_> {
    /// How often scripts were flushed. What is known of scripts holds until this changes.
    pub async fn script_flushes(&self) -> Result<u64, StoreError> {
        if let Some(flushes) = self.namespaces.script_flushes() {
            return Ok(flushes);
        }
        let key = self.layout().script_flushes_key();
        let row = self.transaction.get(&key, Isolation::Serializable).await?;
        let flushes = decode_counter(row.as_ref())?.cast_unsigned();
        self.namespaces.set_script_flushes(flushes);
        Ok(flushes)
    }

    /// What is stored of a script.
    pub async fn stored_script(&self, sha: &str) -> Result<Option<StoredScript>, StoreError> {
        let key = self.layout().script_key(sha);
        let row = self.transaction.get(&key, Isolation::Serializable).await?;
        Ok(row.map(|row| StoredScript::decode(&row)).transpose()?)
    }

    /// A stored script with its text.
    ///
    /// # Errors
    /// When the store fails, or where pieces are missing.
    pub async fn load_script(
        &self,
        sha: &str,
    ) -> Result<Option<(StoredScript, Bytes)>, StoreError> {
        let mut pages = Pages::new(self, self.layout().script_rows(sha), false, 0);
        let mut stored = None;
        let mut text = BytesMut::new();
        while let Some(rows) = pages.next().await? {
            for row in &rows {
                match stored {
                    None => stored = Some(StoredScript::decode(&row.value)?),
                    Some(_) => text.extend_from_slice(&row.value),
                }
            }
        }
        match stored {
            None => Ok(None),
            Some(stored) if stored.length == text.len() as u64 => Ok(Some((stored, text.freeze()))),
            Some(_) => Err(StoreError::Corrupt("pieces of a script are missing")),
        }
    }
}

impl WriteContext<'_> {
    /// Stores a script of which `known` is what the store has.
    ///
    /// # Errors
    /// `NoRoomToGrow` for a script that the store has not, while the disk is full.
    pub fn store_script(
        &self,
        script: &Script,
        origin: ScriptOrigin,
        known: Option<StoredScript>,
    ) -> Result<(), CommandError> {
        let layout = self.layout();
        match known {
            Some(known) if known.origin == origin || origin == ScriptOrigin::Eval => return Ok(()),
            None if self.transaction.growth() == Growth::DiskFull => {
                return Err(CommandError::NoRoomToGrow);
            }
            Some(known) => {
                let entry = layout.script_by_time_key(known.at_ms, &script.sha);
                self.transaction.clear(&entry);
            }
            None => {
                let pieces = script.text.chunks(VALUE_CHUNK_BYTES_MAX);
                for (number, piece) in (0..).zip(pieces) {
                    let key = layout.script_piece_key(&script.sha, number);
                    self.transaction.set(&key, piece);
                }
            }
        }
        let stored = StoredScript {
            origin,
            at_ms: self.now_ms,
            length: script.text.len() as u64,
        };
        let key = layout.script_key(&script.sha);
        self.transaction.set(&key, &stored.encode());
        if origin == ScriptOrigin::Eval {
            let entry = layout.script_by_time_key(self.now_ms, &script.sha);
            self.transaction.set(&entry, b"");
        }
        Ok(())
    }

    /// SCRIPT FLUSH.
    pub fn flush_scripts(&self) {
        for rows in [self.layout().all_scripts(), self.layout().scripts_by_time()] {
            self.transaction.clear_range(&rows.begin, &rows.end);
        }
        let flushes = self.layout().script_flushes_key();
        self.transaction.atomic_add(&flushes, 1);
        self.namespaces.forget_script_flushes();
    }

    /// Removes the oldest scripts of EVAL beyond as many as stay. Returns how many.
    pub async fn sweep_scripts(&self) -> Result<usize, StoreError> {
        let range = self.layout().scripts_by_time();
        let rows = self
            .transaction
            .get_range(RangeQuery {
                begin: &range.begin,
                end: &range.end,
                limit: SCRIPTS_OF_EVAL_MAX + REMOVED_PER_PASS_MAX,
                reverse: true,
                isolation: Isolation::Snapshot,
            })
            .await?;
        let mut removed = 0;
        for row in rows.iter().skip(SCRIPTS_OF_EVAL_MAX) {
            let sha = self.layout().read_script_by_time(&row.key)?;
            // SCRIPT LOAD may be keeping it at this moment.
            if let Some(stored) = self.stored_script(&sha).await?
                && stored.origin == ScriptOrigin::Eval
            {
                let rows = self.layout().script_rows(&sha);
                self.transaction.clear_range(&rows.begin, &rows.end);
            }
            self.transaction.clear(&row.key);
            removed += 1;
        }
        Ok(removed)
    }
}
