//! Leases and delays that end: their tasks are put back by whoever takes next, and by background
//! work that [alarms](super::alarms) lead to the queue.

use std::collections::BTreeSet;

use futures_util::future::try_join_all;

use super::index::Tending;
use super::state_after;
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_base::limits::REAPER_READS_AT_ONCE;
use quoin_layout::{TaskRegistry, TaskRow, TaskState, successor};
use quoin_store::{Isolation, KeyValue, StoreError};

/// Tasks to be put back that are read first, when nothing is known of how large they are.
const DUE_READS_FIRST: usize = 16;
/// Places of a queue's index that one background pass looks after at most, side by side.
const TENDED_PER_PASS: usize = 64;
/// Every other time the number is halved at random, down to 1: so many sizes there are.
const TENDED_SIZES: u64 = 7;

/// A row in the order of what falls due, and the task's own, where it is there.
type Due = (KeyValue, Option<TaskRow>);

/// What there is to do for a queue, read before anything is written for it.
pub(super) struct Upkeep {
    due: Vec<Due>,
    has_more_due: bool,
    notes: Vec<KeyValue>,
    notes_max: usize,
    notes_read: Vec<(u32, Vec<u8>, Tending)>,
    registry: TaskRegistry,
}

impl WriteContext<'_> {
    /// Puts back up to so many tasks whose lease or delay is over, about so many bytes of payloads
    /// and no more than the batch should hold, but one at least. Answers whether there may be more.
    pub async fn task_put_back(
        &self,
        key: &OpenKey,
        limit: usize,
        bytes_max: usize,
    ) -> Result<bool, StoreError> {
        let (due, has_more) = self.task_due_rows(key, limit, bytes_max).await?;
        self.put_back_all(key, &due).await?;
        Ok(has_more)
    }

    /// The tasks that [`Self::task_put_back`] puts back, and whether there may be more.
    async fn task_due_rows(
        &self,
        key: &OpenKey,
        limit: usize,
        bytes_max: usize,
    ) -> Result<(Vec<Due>, bool), StoreError> {
        let range = self.layout().task_due_by(key.data(), self.now_ms);
        let due = self.task_rows(&range, limit, self.relaxed()).await?;
        let soft_max = self.environment.capabilities.batch_bytes_soft_max;
        let room = soft_max.saturating_sub(self.transaction.size_bytes());
        let mut bytes_left = bytes_max.min(room);
        let mut found: Vec<Due> = Vec::with_capacity(due.len());
        let mut reads_max = DUE_READS_FIRST;
        while found.len() < due.len()
            && (found.is_empty() || (bytes_left > 0 && !self.is_full_or_old()))
        {
            let some = due.get(found.len()..).unwrap_or_default();
            let (some, _) = some.split_at(some.len().min(reads_max));
            // Side by side, because on a cluster each read is a round trip.
            let reads = some
                .iter()
                .map(|row| self.task_row(key, &row.value, Isolation::Serializable));
            let mut bytes_largest = 1;
            for (due_row, row) in some.iter().zip(try_join_all(reads).await?) {
                let bytes = row.as_ref().map_or(0, |row| row.payload.len());
                bytes_largest = bytes_largest.max(bytes);
                if bytes > bytes_left && !found.is_empty() {
                    bytes_left = 0;
                    break;
                }
                bytes_left = bytes_left.saturating_sub(bytes);
                found.push((due_row.clone(), row));
            }
            reads_max = (bytes_left / bytes_largest).clamp(1, REAPER_READS_AT_ONCE);
        }
        let has_more = found.len() < due.len() || due.len() >= limit;
        Ok((found, has_more))
    }

    /// Puts tasks back.
    async fn put_back_all(&self, key: &OpenKey, due: &[Due]) -> Result<(), StoreError> {
        let mut back = Vec::with_capacity(due.len());
        for (due_row, row) in due {
            let Some(mut row) = row.clone() else {
                self.transaction.clear(&due_row.key);
                continue;
            };
            self.task_leave(key, &row);
            let was_leased = row.state == TaskState::Leased;
            row.state = state_after(&row);
            if was_leased {
                self.signals.task_end(row.state == TaskState::Dead);
            }
            row.token = 0;
            row.at_ms = match row.state {
                TaskState::Dead => self.now_ms,
                _ => 0,
            };
            back.push((due_row.value.clone(), row));
        }
        self.task_enter_all(key, &back).await?;
        if !back.is_empty() {
            self.mark_changed(key);
        }
        Ok(())
    }

    /// Whether the batch holds as much, or is as old, as one should.
    pub(super) fn is_full_or_old(&self) -> bool {
        self.is_full() || self.is_old()
    }

    /// Reads what there is to do for a queue: up to so many tasks that are put back, of about so
    /// many bytes, and the places of the index that somebody has left a note of.
    pub(super) async fn task_upkeep_due(
        &self,
        key: &OpenKey,
        (tasks_max, bytes_max): (usize, usize),
    ) -> Result<Upkeep, StoreError> {
        let (due, has_more_due) = self.task_due_rows(key, tasks_max, bytes_max).await?;
        let notes = self.layout().task_untended(key.data());
        // However much other servers add, sooner or later a pass is small enough to get through.
        let random = &self.environment.random;
        let notes_max = match random.below(2) {
            0 => TENDED_PER_PASS,
            _ => TENDED_PER_PASS >> random.below(TENDED_SIZES),
        };
        let notes = self
            .task_rows(&notes, notes_max, Isolation::Snapshot)
            .await?;
        let registry = self.task_registry(key, Isolation::Snapshot).await?;
        let notes_read = notes
            .iter()
            .map(|note| {
                let (class, place) = self.layout().read_task_untended(key.data(), &note.key)?;
                Ok((class, place, Tending::from_note(&note.value)))
            })
            .collect::<Result<Vec<_>, StoreError>>()?;
        Ok(Upkeep {
            due,
            has_more_due,
            notes,
            notes_max,
            notes_read,
            registry,
        })
    }

    /// Does it. Answers whether that was all there is to do now; sets the next alarm then.
    pub(super) async fn task_upkeep(
        &self,
        key: &OpenKey,
        upkeep: Upkeep,
    ) -> Result<bool, StoreError> {
        let Upkeep {
            due,
            has_more_due,
            notes,
            notes_max,
            notes_read,
            registry,
        } = upkeep;
        self.put_back_all(key, &due).await?;
        if has_more_due && self.is_full_or_old() {
            return Ok(false);
        }
        let slots = |class: u32| {
            let mask = usize::try_from(class).ok();
            let mask = mask.and_then(|class| registry.classes.get(class));
            mask.map_or(0, |class| class.mask.count_ones() as usize)
        };
        let classes: BTreeSet<u32> = notes_read.iter().map(|(class, ..)| *class).collect();
        for class in classes {
            let class = self.class_place(key, class, slots(class));
            if let Some((first, _)) = self.first_order_rows(&class, 1).await?.first() {
                self.drop_head(&class, first).await?;
            }
        }
        // Before others are left, which may be for the same places.
        for note in &notes {
            self.transaction
                .add_read_conflict_range(&note.key, &successor(&note.key));
            self.transaction.clear(&note.key);
        }
        // Side by side: what one of them puts down holds whatever the others do meanwhile, since
        // all of it is less than the needs of tasks that were read.
        let tended = notes_read.iter().map(async |(class, place, tending)| {
            let class = self.class_place(key, *class, slots(*class));
            if class.slots == 0 {
                return Ok(false);
            }
            // Those that lie in one stretch make the same cuts, however many they are: what is too
            // long still must not be forgotten with them.
            let too_long = self.tend(&class, place, *tending).await?;
            for place in &too_long {
                self.leave_untended(key, &class, place, Tending::All);
            }
            Ok::<_, StoreError>(!too_long.is_empty())
        });
        let has_more_to_cut = try_join_all(tended).await?.contains(&true);
        if has_more_due || has_more_to_cut || notes.len() >= notes_max {
            return Ok(false);
        }
        if let Some(at_ms) = self.task_next_due(key).await? {
            self.set_alarm(key, at_ms);
        }
        Ok(true)
    }
}
