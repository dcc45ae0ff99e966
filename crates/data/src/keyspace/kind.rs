//! What general code needs to know about a type of values.
//!
//! Each type's folder has one descriptor, a [`ValueKind`]. Code that serves keys of any type asks the descriptor and
//! names no type. Every field is required, so the compiler reports anything missing for a new type.

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;

use crate::error::CommandError;
use quoin_layout::{
    DecodeError, Id, InlineValue, KeyRange, Layout, Meta, PoppedElement, Section, ValueType,
};
use quoin_rdb::Payload;
use quoin_store::{Isolation, KeyValue, ReadTransaction, StoreError, Transaction};

use crate::keyspace::figures::{KeyFigures, StateFigures};
use crate::keyspace::import::Import;
use crate::keyspace::key::OpenKey;
use crate::unit::context::{ReadContext, WriteContext};

/// The future of a descriptor's hook.
pub type Answer<'c, T, E = StoreError> = LocalBoxFuture<'c, Result<T, E>>;

/// The descriptor of a type.
#[derive(Debug)]
pub struct ValueKind {
    /// The type's name in replies of TYPE.
    pub name: &'static str,
    /// The reply of OBJECT ENCODING: Redis's word for its own types, otherwise how the value is stored.
    pub encoding: EncodingFn,
    /// Whether clients see a key of the type that has no elements. Keys of other types cease to exist with their last
    /// element, unless their metadata says that they are kept.
    pub exists_when_empty: bool,
    /// How a small value of the type is stored in its key's metadata; `None` if values are always stored in rows.
    pub inline: Option<InlineKind>,
    /// Whether clients can wait for new elements of such a key.
    pub is_waited_for: bool,
    /// Which of its elements are counted as they enter and leave, for QUEUE.TOP and metrics.
    pub flow: ElementFlow,
    /// The sections that contain rows of such a value.
    pub sections: &'static [SectionKind],
    /// Counters of the elements in some groups ([`ElementRow::group`]).
    pub counters: &'static [GroupCounter],
    /// How elements are popped from an end, if they can be.
    pub queue: Option<QueueKind>,
    /// Called after a key with data has been renamed.
    pub on_put: Option<fn(&WriteContext<'_>, &OpenKey)>,
    /// Returns the elements in order, for SORT; `None` if SORT refuses the type.
    pub slice: Option<SliceFn>,
    /// The section whose rows are looked up by an element's name, if there is one.
    pub named_section: Option<Section>,
    /// Returns a value's length and age, for metrics; `None` if the type has no elements.
    pub figures: Option<FiguresFn>,
    /// The rows of deadlines that have passed at a time in milliseconds. A timer says when background work should read
    /// them.
    pub deadlines: &'static [fn(&Layout, Id, i64) -> KeyRange],
    /// DUMP and RESTORE; `None` if they refuse the type.
    pub serialization: Option<Serialization>,
    /// How `quoin import` copies values; `None` if it cannot.
    pub import: Option<Import>,
}

/// Which elements of a type's values are counted as they enter and leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementFlow {
    /// None: the type is no queue.
    Nothing,
    /// Elements that make a value longer or shorter.
    ByLength,
    /// Elements that make it longer. Acknowledged entries of a stream do not show in its length,
    /// because they stay in it.
    Additions,
}

/// Returns the figures of a value for each state that its elements can have.
pub type FiguresFn = for<'c> fn(&'c ReadContext<'c>, &'c OpenKey) -> Answer<'c, Vec<StateFigures>>;

/// Most bytes of a value in metadata, for all types. LMDB puts larger values into pages of their own, SCAN reads these
/// values too, and every change rewrites the whole value.
pub const INLINE_BYTES_MAX: usize = 1_024;

/// How a type's small values are stored in metadata.
#[derive(Debug)]
pub struct InlineKind {
    /// The value's length, which a value in rows has in its length counter.
    pub length: fn(&Bytes) -> Result<i64, DecodeError>,
}

/// Returns how Redis would represent a value.
pub type EncodingFn = for<'c> fn(&'c ReadContext<'c>, &'c OpenKey) -> Answer<'c, &'static str>;

/// Reads some elements of a value.
pub type SliceFn = for<'c> fn(&'c ReadContext<'c>, &'c OpenKey, Slice) -> Answer<'c, Vec<Bytes>>;

/// The elements with the indexes `begin..end`, counted from the end if `descending`.
#[derive(Debug, Clone, Copy)]
pub struct Slice {
    /// Index of the first element.
    pub begin: i64,
    /// Index after the last; greater than `begin`.
    pub end: i64,
    /// The value's number of elements.
    pub length: i64,
    /// From the last element to the first.
    pub descending: bool,
}

/// A section of a type's data.
#[derive(Debug)]
pub struct SectionKind {
    /// The section.
    pub section: Section,
    /// The content of its rows.
    pub holds: Holds,
    /// Whether MEMORY USAGE measures it. Sections that are not measured are small compared to those that are.
    pub is_measured: bool,
    /// How `quoin doctor` checks its entries against another section.
    pub check: Option<EntryCheck>,
}

/// The content of a section's rows.
#[derive(Debug)]
pub enum Holds {
    /// Rows of elements. Their number is the key's length.
    Elements(fn(&Bytes) -> Result<ElementRow, DecodeError>),
    /// A second row for each element. If the numbers of rows differ, it is unknown which are correct.
    Twins,
    /// A row for each element of these groups, derived from the element's own row.
    Index(&'static [u8]),
    /// Parts of split values.
    Chunks,
    /// Anything else. These rows may exist without any element.
    Other,
    /// Pieces of the value. Their number is not the key's length.
    Pieces,
    /// Data about blocks of elements, if the metadata says that there are blocks ([`ranks`](crate::rows::ranks)).
    Ranks,
}

/// The content of an element row.
#[derive(Debug)]
pub struct ElementRow {
    /// Its [`StoredValue`](quoin_layout::StoredValue), which may have chunks.
    pub value: Option<Bytes>,
    /// The group of the element; 0 if the type has no groups.
    pub group: u8,
    /// Number of elements in the row: one, unless the type packs several into a row.
    pub count: usize,
}

impl SectionKind {
    /// Parts of split values of any type.
    pub const CHUNKS: Self = Self::new(Section::Chunks, Holds::Chunks, false);

    const fn new(section: Section, holds: Holds, is_measured: bool) -> Self {
        Self {
            section,
            holds,
            is_measured,
            check: None,
        }
    }

    /// Elements. `read` parses their rows.
    pub const fn elements(
        section: Section,
        read: fn(&Bytes) -> Result<ElementRow, DecodeError>,
    ) -> Self {
        Self::new(section, Holds::Elements(read), true)
    }

    /// A second row for each element.
    pub const fn twins(section: Section) -> Self {
        Self::new(section, Holds::Twins, true)
    }

    /// An index of the elements of some groups.
    pub const fn index(section: Section, groups: &'static [u8]) -> Self {
        Self::new(section, Holds::Index(groups), false)
    }

    /// Pieces of values.
    pub const fn pieces(section: Section) -> Self {
        Self::new(section, Holds::Pieces, true)
    }

    /// Rows about blocks of elements.
    pub const fn ranks(section: Section) -> Self {
        Self::new(section, Holds::Ranks, false)
    }

    /// Rows of another kind.
    pub const fn other(section: Section) -> Self {
        Self::new(section, Holds::Other, false)
    }

    /// Includes the section in MEMORY USAGE.
    pub const fn measured(self) -> Self {
        Self {
            is_measured: true,
            ..self
        }
    }

    /// Adds a check of its entries for `quoin doctor`.
    pub const fn checked(self, check: EntryCheck) -> Self {
        Self {
            check: Some(check),
            ..self
        }
    }
}

/// Parses a row that consists of an element's value.
///
/// # Errors
/// None; [`Holds::Elements`] requires the return type.
pub fn plain_element(row: &Bytes) -> Result<ElementRow, DecodeError> {
    Ok(ElementRow {
        value: Some(row.clone()),
        group: 0,
        count: 1,
    })
}

/// Parses a row that is an element's value, or is empty because its key says everything.
///
/// # Errors
/// None. [`Holds::Elements`] requires the return type.
pub fn element_or_empty(row: &Bytes) -> Result<ElementRow, DecodeError> {
    Ok(ElementRow {
        value: (!row.is_empty()).then(|| row.clone()),
        group: 0,
        count: 1,
    })
}

/// A counter of the elements of some groups.
#[derive(Debug)]
pub struct GroupCounter {
    /// The groups.
    pub groups: &'static [u8],
    /// The counter's key.
    pub key: fn(&Layout, Id) -> Vec<u8>,
}

/// Number of entries that most checks look up together. On a cluster these reads are concurrent.
const ENTRIES_AT_ONCE: usize = 64;

/// How `quoin doctor` checks that entries of a section have a counterpart in another section.
#[derive(Debug)]
pub struct EntryCheck {
    /// What is wrong with an entry without a counterpart.
    pub fault: &'static EntryFault,
    /// Whether each of these entries has its counterpart. An unreadable entry counts as sound, because the count of
    /// rows reports it.
    pub are_sound: AreSoundFn,
    /// Number of entries to look up together.
    pub entries_at_once: usize,
    /// Recomputes counters after such entries were removed.
    pub recount: Option<RecountFn>,
}

/// Checks entries.
pub type AreSoundFn = for<'c> fn(Entries<'c>) -> Answer<'c, Vec<bool>>;

impl EntryCheck {
    /// A check that looks up the default number of entries at once.
    pub const fn new(fault: &'static EntryFault, are_sound: AreSoundFn) -> Self {
        Self {
            fault,
            are_sound,
            entries_at_once: ENTRIES_AT_ONCE,
            recount: None,
        }
    }

    /// Sets the number of entries to look up at once.
    pub const fn at_once(self, entries: usize) -> Self {
        Self {
            entries_at_once: entries,
            ..self
        }
    }

    /// Sets the function that recomputes counters after entries were removed.
    pub const fn recounted(self, recount: RecountFn) -> Self {
        Self {
            recount: Some(recount),
            ..self
        }
    }
}

/// Recomputes and writes the counters of removed entries.
pub type RecountFn = for<'c> fn(Entries<'c>, &'c dyn Transaction) -> Answer<'c, ()>;

/// A fault of entries.
#[derive(Debug)]
pub struct EntryFault {
    /// The description that follows the number of entries: for 1, and for other numbers.
    pub text: [&'static str; 2],
    /// What to do about it.
    pub advice: &'static str,
    /// Whether such entries can be removed. A check that recomputes counters may write them again immediately.
    pub is_removable: bool,
    /// Returns the client-visible name of an entry, given its key.
    pub entry_name: Option<NameFn>,
}

/// Parses the name of an entry from its key.
pub type NameFn = fn(&Layout, Id, &[u8]) -> Result<Vec<u8>, DecodeError>;

/// Entries of a section that were read together.
#[derive(Clone, Copy)]
pub struct Entries<'c> {
    /// The store's layout.
    pub layout: &'c Layout,
    /// The transaction that read them.
    pub transaction: &'c dyn ReadTransaction,
    /// How to read the data that they are compared with.
    pub isolation: Isolation,
    /// The value's type.
    pub kind: &'static ValueKind,
    /// The value's data id.
    pub data: Id,
    /// Their rows.
    pub rows: &'c [KeyValue],
}

/// How elements are popped from the ends of a type's values.
#[derive(Debug)]
pub struct QueueKind {
    /// The sections that pops from the start and from the end read first. Their ends hold metadata copies. `None` if
    /// pops do not read from the end of a section.
    pub sections: [Option<Section>; 2],
    /// Returns the length of the prefix of an element's name that all elements of its rank share. Set if elements of
    /// one rank are popped in key order at both ends.
    pub rank_length: Option<RankLengthFn>,
    /// Returns elements of a [grant](crate::cluster::delegation) to the end that they were popped from, in that order,
    /// before the others. An element that was added again meanwhile stays unchanged.
    pub put_back: for<'c> fn(
        &'c WriteContext<'c>,
        &'c OpenKey,
        Vec<PoppedElement>,
        bool,
    ) -> Answer<'c, (), CommandError>,
}

/// Returns the length of the part of an element's name that determines its rank.
pub type RankLengthFn = fn(&[u8]) -> Result<usize, DecodeError>;

/// A type's part in DUMP and RESTORE.
#[derive(Debug)]
pub struct Serialization {
    /// Whether a payload holds a value of this type.
    pub reads: fn(&Payload) -> bool,
    /// The value as a payload. `None` if all of it has expired and has not been removed yet.
    pub dump:
        for<'c> fn(&'c ReadContext<'c>, &'c OpenKey) -> Answer<'c, Option<Bytes>, CommandError>,
    /// Parses such a payload completely.
    pub read: fn(&ReadContext<'_>, Payload) -> Result<Restorable, CommandError>,
}

/// A value that was parsed completely, is well-formed, and is not known to exceed one transaction. Stores the value at
/// a name, with an expiry, and replaces any key there.
pub type Restorable = Box<
    dyn for<'c> FnOnce(
        &'c WriteContext<'c>,
        &'c Bytes,
        Option<i64>,
    ) -> Answer<'c, (), CommandError>,
>;

impl ValueKind {
    /// The descriptors of all types.
    pub fn all() -> impl Iterator<Item = &'static Self> + Clone {
        ValueType::ALL.iter().map(|value_type| value_type.kind())
    }

    /// Number of elements in a row of a section. An unreadable row counts as one.
    pub fn elements_in(&self, section: Section, row: &KeyValue) -> usize {
        let mut sections = self.sections.iter();
        match sections.find(|kind| kind.section == section) {
            Some(SectionKind {
                holds: Holds::Elements(read),
                ..
            }) => read(&row.value).map_or(1, |elements| elements.count),
            _ => 1,
        }
    }

    /// The section of the elements, if their ranks are found by blocks ([`ranks`](crate::rows::ranks)).
    pub fn ranked_section(&self) -> Option<Section> {
        let is_ranked = { self.sections.iter() }.any(|kind| matches!(kind.holds, Holds::Ranks));
        let mut sections = self.sections.iter();
        sections
            .find(|kind| is_ranked && matches!(kind.holds, Holds::Elements(_)))
            .map(|kind| kind.section)
    }

    /// Whether waiting clients may need the key itself. For types whose keys cease to exist with their last element,
    /// clients keep waiting without a key.
    pub fn is_missed(&self) -> bool {
        self.is_waited_for && self.exists_when_empty
    }

    /// Whether a value with this metadata may have rows when it has no elements.
    pub fn keeps_rows_when_empty(meta: &Meta) -> bool {
        let mut sections = meta.value_type.kind().sections.iter();
        meta.rank_levels > 0
            || sections.any(|kind| matches!(kind.holds, Holds::Other | Holds::Pieces))
    }

    /// The length of a value that is stored in metadata.
    ///
    /// # Errors
    /// If its bytes are malformed.
    pub fn inline_length(&self, inline: &InlineValue) -> Result<i64, DecodeError> {
        match &self.inline {
            Some(kind) => (kind.length)(&inline.bytes),
            None => Err(DecodeError(
                "an inline value of a type without inline values",
            )),
        }
    }
}

impl ReadContext<'_> {
    /// The figures of a key, if it exists and its type has elements. INFO does not count this as a lookup.
    ///
    /// # Errors
    /// If its rows are malformed.
    pub async fn key_figures(&self, name: &Bytes) -> Result<Option<KeyFigures>, StoreError> {
        let context = self.uncounted();
        let Some(key) = context.find_any(name).await? else {
            return Ok(None);
        };
        let value_type = key.meta.value_type;
        match value_type.kind().figures {
            Some(figures) => Ok(Some(KeyFigures {
                value_type,
                states: figures(&context, &key).await?,
            })),
            None => Ok(None),
        }
    }
}

/// Maps a type's code in metadata to its descriptor.
pub trait TypeKind: Copy + Sized {
    /// The type's descriptor.
    fn kind(self) -> &'static ValueKind;

    /// The type's name in replies of TYPE.
    fn name(self) -> &'static str {
        self.kind().name
    }

    /// The section that pops from this end read first. It holds a metadata copy.
    fn section_popped(self, from_end: bool) -> Option<Section> {
        let [start, end] = self.kind().queue.as_ref()?.sections;
        if from_end { end } else { start }
    }

    /// Keys of all metadata copies of such a value.
    fn meta_copy_keys(self, layout: &Layout, data: Id) -> impl Iterator<Item = Vec<u8>> {
        [false, true].into_iter().filter_map(move |from_end| {
            let section = self.section_popped(from_end)?;
            Some(layout.meta_copy_key(data, section, from_end))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use bytes::Bytes;

    use super::*;
    use crate::table;
    use quoin_rdb::testing::sealed;
    use quoin_rdb::{DumpedOptions, PriorityQueueWriter, TaskQueueWriter, open};

    #[test]
    fn names_are_unique_and_lower_case() {
        let names: HashSet<_> = ValueKind::all().map(|kind| kind.name).collect();
        assert_eq!(names.len(), ValueType::ALL.len());
        assert!(names.iter().all(|name| *name == name.to_ascii_lowercase()));
    }

    #[test]
    fn every_section_is_described_by_a_type() {
        let sections = ValueKind::all().flat_map(|kind| kind.sections);
        let described: HashSet<_> = sections.map(|kind| kind.section).collect();
        for section in Section::ALL {
            assert!(described.contains(section), "{section:?}");
        }
    }

    #[test]
    fn descriptors_do_not_contradict_themselves() {
        for kind in ValueKind::all() {
            let name = kind.name;
            let sections: HashSet<_> = kind.sections.iter().map(|kind| kind.section).collect();
            assert_eq!(sections.len(), kind.sections.len(), "{name}");
            let is_elements = |kind: &&SectionKind| matches!(kind.holds, Holds::Elements(_));
            assert!(
                kind.sections.iter().filter(is_elements).count() <= 1,
                "{name}"
            );
            let popped = kind.queue.iter().flat_map(|queue| queue.sections).flatten();
            for section in popped {
                let elements = kind.sections.iter().find(is_elements);
                assert_eq!(Some(section), elements.map(|kind| kind.section), "{name}");
            }
            let mut indexed = kind.sections.iter().filter_map(|kind| match kind.holds {
                Holds::Index(groups) => Some(groups),
                _ => None,
            });
            for group in kind.counters.iter().flat_map(|counter| counter.groups) {
                assert!(
                    indexed.clone().any(|groups| groups.contains(group)),
                    "{name}"
                );
            }
            assert!(indexed.all(|groups| !groups.is_empty()), "{name}");
        }
    }

    #[test]
    fn a_payload_is_of_one_type_at_most() {
        let redis = (0..=u8::MAX).map(|rdb_type| sealed(10, &[rdb_type]).into());
        let own = [
            PriorityQueueWriter::new().finish(),
            TaskQueueWriter::new(0, &[], &DumpedOptions::default()).finish(),
        ];
        for payload in redis.chain(own) {
            let payload = open(&payload).unwrap();
            let serializations = ValueKind::all().filter_map(|kind| kind.serialization.as_ref());
            let readers = serializations.filter(|one| (one.reads)(&payload)).count();
            let expected = usize::from(payload.own_type().is_some());
            assert!(
                (expected..=1).contains(&readers),
                "{readers} read {payload:?}"
            );
        }
    }

    #[test]
    fn commands_wait_for_just_the_types_that_say_so() {
        let mut names = HashSet::new();
        let mut waited_for = HashSet::new();
        for line in [
            "BLPOP q 0",
            "BRPOP q 0",
            "BLMOVE q r LEFT LEFT 0",
            "BLMOVEM q r LEFT LEFT 0",
            "BRPOPLPUSH q r 0",
            "BLMPOP 0 1 q LEFT",
            "BZPOPMIN q 0",
            "BZPOPMAX q 0",
            "BZMPOP 0 1 q MIN",
            "PQ.BPOPMIN q 0",
            "PQ.BPOPMAX q 0",
            "TASK.TAKE q BLOCK 0",
            "TASK.RESULT q id BLOCK 0",
            "XREAD BLOCK 0 STREAMS q $",
            "XREADGROUP GROUP g c BLOCK 0 STREAMS q >",
        ] {
            let words = line.split(' ').map(str::to_owned).map(Bytes::from);
            let arguments: Vec<Bytes> = words.collect();
            let row = table::find(&arguments[0]).unwrap();
            let spec = row.waits.unwrap()(&arguments, 0).unwrap().unwrap();
            names.insert(row.name);
            waited_for.insert(spec.value_type);
        }
        let waiting = table::all().iter().filter(|row| row.waits.is_some());
        assert_eq!(names, waiting.map(|row| row.name).collect());
        for value_type in ValueType::ALL {
            let is_waited_for = waited_for.contains(value_type);
            assert_eq!(
                value_type.kind().is_waited_for,
                is_waited_for,
                "{value_type:?}"
            );
        }
    }
}
