//! Dead letters: entries that were delivered too often, in another stream.

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::stream::{NewId, StreamEntry};
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;

use super::OpenGroup;
use super::pending::PendingEntry;

/// Names of the fields that a dead letter has besides those of its entry: the stream, the group, its
/// id there, and how often it was delivered.
const DEAD_LETTER_FIELDS: [&str; 4] = ["_stream", "_group", "_id", "_deliveries"];

/// What a field of a dead letter takes beside its own bytes, at the most.
const LETTER_FIELD_BYTES: usize = 8;
/// Room that a transaction keeps for what is written besides a large dead letter. A letter that leaves
/// less than some times this free of an empty transaction is never moved, so one that is moved finds
/// room in a transaction that has written little else.
const LETTER_ROOM_BYTES: usize = 300_000;

impl WriteContext<'_> {
    /// Whether a transaction can hold a dead letter.
    pub(super) fn can_hold_letter(&self, letter: &[Bytes]) -> bool {
        let bytes_max = self.environment.capabilities.transaction_bytes_max;
        letter_bytes(letter) <= bytes_max.saturating_sub(3 * LETTER_ROOM_BYTES)
    }

    /// Whether this transaction should take a dead letter after so many entries. The first may be
    /// larger than a batch should become.
    pub(super) fn has_room_for_letter(&self, letter: &[Bytes], after: usize) -> bool {
        let bytes = self.transaction.size_bytes() + letter_bytes(letter);
        let capabilities = &self.environment.capabilities;
        let bytes_max = capabilities.transaction_bytes_max;
        bytes <= capabilities.batch_bytes_soft_max
            || (after == 0 && bytes <= bytes_max.saturating_sub(LETTER_ROOM_BYTES))
    }

    /// Adds a dead letter to the stream of that name, which is made where it is missing.
    ///
    /// # Errors
    /// `Text` where the name holds no stream or the letter's own.
    pub(super) async fn put_dead_letter(
        &self,
        name: &Bytes,
        stream: &OpenKey,
        group: &OpenGroup,
        fields: &[Bytes],
    ) -> Result<(), CommandError> {
        let key = match self.find(name, ValueType::Stream).await {
            // RENAME and COPY may have put it there.
            Ok(Some(key)) if key.meta_key == stream.meta_key => {
                return Err(no_dead_letter_stream(group, "holds the stream itself"));
            }
            Ok(Some(key)) => key,
            Ok(None) => self.create(name, ValueType::Stream, None).await?,
            Err(CommandError::WrongType) => {
                return Err(no_dead_letter_stream(group, "holds no stream"));
            }
            Err(error) => return Err(error),
        };
        self.stream_append(&key, NewId::Now, fields).await?;
        self.notify(EventClasses::STREAM, "xadd", name);
        Ok(())
    }
}

fn no_dead_letter_stream(group: &OpenGroup, why: &str) -> CommandError {
    let group = String::from_utf8_lossy(&group.name);
    CommandError::Text(
        format!(
            "ERR the dead letter key of group '{group}' {why}; nothing was read. XGROUP SETPOLICY can \
             name another"
        )
        .into(),
    )
}

/// About how many bytes a dead letter takes in the store.
fn letter_bytes(letter: &[Bytes]) -> usize {
    let fields = letter.iter();
    fields.map(|field| field.len() + LETTER_FIELD_BYTES).sum()
}

/// The names and values of an entry in a dead letter stream.
pub(super) fn letter(
    entry: StreamEntry,
    key_name: &Bytes,
    group: &OpenGroup,
    pending: &PendingEntry,
) -> Vec<Bytes> {
    let values = [
        key_name.clone(),
        group.name.clone(),
        Bytes::from(entry.id.to_string()),
        Bytes::from(pending.row.deliveries.to_string()),
    ];
    let names = DEAD_LETTER_FIELDS.map(|name| Bytes::from_static(name.as_bytes()));
    let mut fields = entry.fields;
    for (name, value) in names.into_iter().zip(values) {
        fields.push(name);
        fields.push(value);
    }
    fields
}
