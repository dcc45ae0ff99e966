//! OBJECT and MEMORY, including how much space a key takes in the store.

use bytes::Bytes;
use quoin_base::allocator;
use quoin_base::limits::MEMORY_USAGE_SAMPLES_DEFAULT;
use quoin_layout::string::PIECE_BYTES;
use quoin_layout::{DecodeError, KeyRange, StoredValue};
use quoin_resp::reply::Reply;
use quoin_store::{Isolation, KeyValue, StoreError};

use crate::command::arguments::{argument, integer, is_word, rest, to_usize};
use crate::command::help;
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::{Holds, SectionKind, TypeKind};
use crate::rows::pages::Pages;
use crate::unit::context::{Environment, ReadContext};

const HELP_TITLE: &str = "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";

const HELP: &[&str] = &[
    "ENCODING <key>",
    "    Return the kind of internal representation used in order to store the value",
    "    associated with a <key>.",
    "FREQ <key>",
    "    Return the access frequency index of the <key>. The returned integer is",
    "    proportional to the logarithm of the recent access frequency of the key.",
    "IDLETIME <key>",
    "    Return the idle time of the <key>, that is the approximated number of",
    "    seconds elapsed since the last access to the key.",
    "REFCOUNT <key>",
    "    Return the number of references of the value associated with the specified",
    "    <key>.",
];

/// `OBJECT HELP`.
pub(super) fn help(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(help::help(HELP_TITLE, HELP))
}

/// `OBJECT ENCODING key`: how Redis would represent its value.
pub(super) async fn encoding(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let Some(key) = context.find_any(argument(arguments, 2)?).await? else {
        return Ok(Reply::Null);
    };
    let encoding = (key.meta.value_type.kind().encoding)(context, &key).await?;
    Ok(Reply::bulk(encoding))
}

/// `OBJECT REFCOUNT key`: always 1.
pub(super) async fn refcount(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    of_value(context, arguments, Ok(Reply::Integer(1))).await
}

/// `OBJECT IDLETIME key`: always 0. Reads are not recorded, so the time of the last one is unknown.
pub(super) async fn idletime(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    of_value(context, arguments, Ok(Reply::Integer(0))).await
}

/// `OBJECT FREQ key`, which is refused.
pub(super) async fn freq(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let refusal = CommandError::text(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note \
         that when switching between policies at runtime LRU and LFU data will take some time to \
         adjust.",
    );
    of_value(context, arguments, Err(refusal)).await
}

/// Returns `answer`, or null if there is no such key.
async fn of_value(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
    answer: Result<Reply, CommandError>,
) -> Result<Reply, CommandError> {
    match context.find_any(argument(arguments, 2)?).await? {
        Some(_) => answer,
        None => Ok(Reply::Null),
    }
}

const MEMORY_HELP_TITLE: &str = "MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";

const MEMORY_HELP: &[&str] = &[
    "DOCTOR",
    "    Return memory problems reports.",
    "MALLOC-STATS",
    "    Return internal statistics report from the memory allocator.",
    "PURGE",
    "    Attempt to purge dirty pages for reclamation by the allocator.",
    "STATS",
    "    Return information about the memory usage of the server.",
    "USAGE <key> [SAMPLES <count>]",
    "    Return memory in bytes used by <key> and its value. Nested values are",
    "    sampled up to <count> times (default: 1000, 0 means sample all).",
];

/// `MEMORY HELP`.
pub(super) fn memory_help(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(help::help(MEMORY_HELP_TITLE, MEMORY_HELP))
}

/// `MEMORY DOCTOR`.
pub(super) fn doctor(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    let text = "Hi Sam, I can't find any memory issue in your instance. I can only account for \
                what occurs on this base.\n";
    Ok(Reply::Verbatim("txt", Bytes::from_static(text.as_bytes())))
}

/// `MEMORY MALLOC-STATS`.
pub(super) fn malloc_stats(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(Reply::bulk("Stats not supported for the current allocator"))
}

/// `MEMORY PURGE`.
pub(super) fn purge(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    allocator::purge();
    Ok(Reply::OK)
}

/// `MEMORY USAGE key [SAMPLES count]`.
pub(super) async fn usage(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 2)?;
    let options = rest(arguments, 3);
    let mut samples = MEMORY_USAGE_SAMPLES_DEFAULT;
    for option in options.chunks(2) {
        let [word, count] = option else {
            return Err(CommandError::Syntax);
        };
        if !is_word(word, "samples") {
            return Err(CommandError::Syntax);
        }
        samples = match integer(count)? {
            0 => usize::MAX,
            count if count < 0 => return Err(CommandError::Syntax),
            count => to_usize(count),
        };
    }
    let Some(key) = context.find_any(name).await? else {
        return Ok(Reply::Null);
    };
    let bytes = context.stored_bytes(&key, samples).await?;
    Ok(Reply::Integer(i64::try_from(bytes).unwrap_or(i64::MAX)))
}

/// Bytes of a length counter that has its own row.
const COUNTER_BYTES: usize = 8;

impl ReadContext<'_> {
    /// Approximate bytes of store keys and values that a key takes. Exact if the value has at most `samples` elements;
    /// otherwise extrapolated from the first `samples` elements. The overhead of the store's pages is not included.
    pub async fn stored_bytes(&self, key: &OpenKey, samples: usize) -> Result<u64, StoreError> {
        let layout = self.layout();
        let meta_bytes = key.meta_key.len() + key.meta.encode().len();
        let expiry_bytes = key.meta.expire_at_ms.map_or(0, |at_ms| {
            layout.expiry_key(at_ms, key.namespace, &key.name).len()
        });
        if key.meta.inline.is_some() {
            return Ok((meta_bytes + expiry_bytes) as u64);
        }
        let length_bytes = layout.length_key(&key.meta_key).len() + COUNTER_BYTES;
        let length = self.length(key, Isolation::Snapshot).await?;
        let length = u64::try_from(length).unwrap_or(0);
        let mut bytes = (meta_bytes + length_bytes + expiry_bytes) as u64;
        let sections = key.meta.value_type.kind().sections.iter();
        for section in sections.filter(|section| section.is_measured) {
            bytes += self.section_bytes(key, section, length, samples).await?;
        }
        Ok(bytes)
    }

    async fn section_bytes(
        &self,
        key: &OpenKey,
        kind: &SectionKind,
        length: u64,
        samples: usize,
    ) -> Result<u64, StoreError> {
        let prefix = self.layout().section_prefix(key.data(), kind.section);
        let range = KeyRange::children(&prefix);
        let mut pages = Pages::new(self, range, false, samples);
        // If rows hold several elements, this counts elements.
        let mut seen = 0_usize;
        let mut bytes_seen = 0_u64;
        'samples: while let Some(rows) = pages.next().await? {
            for row in &rows {
                if seen >= samples {
                    break 'samples;
                }
                let (count, bytes) = row_bytes(row, kind)?;
                seen += count;
                bytes_seen += bytes;
            }
        }
        if seen < samples {
            return Ok(bytes_seen);
        }
        let all = match kind.holds {
            // An upper bound: there may be fewer pieces.
            Holds::Pieces => length.div_ceil(PIECE_BYTES as u64),
            _ => length,
        };
        let total = u128::from(bytes_seen) * u128::from(all) / seen as u128;
        Ok(u64::try_from(total).unwrap_or(u64::MAX))
    }
}

/// The number of elements in a row and its bytes, including the chunks of a split value but not their keys.
fn row_bytes(row: &KeyValue, kind: &SectionKind) -> Result<(usize, u64), DecodeError> {
    let own_bytes = (row.key.len() + row.value.len()) as u64;
    let (count, value) = match kind.holds {
        Holds::Elements(read) => {
            let element = read(&row.value)?;
            (element.count, element.value)
        }
        _ => (1, None),
    };
    let split_bytes = value.as_ref().map(split_bytes).transpose()?;
    Ok((count, own_bytes + split_bytes.unwrap_or(0)))
}

/// Bytes of a value that are stored outside its row.
fn split_bytes(value: &Bytes) -> Result<u64, DecodeError> {
    match StoredValue::decode(value)? {
        StoredValue::Plain(_) => Ok(0),
        StoredValue::Split { length, .. } => Ok(length),
    }
}
