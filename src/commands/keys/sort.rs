//! SORT and SORT_RO.

use bytes::Bytes;

use crate::commands::arguments::{argument, integer, is_word, rest};
use crate::error::CommandError;
use crate::events::EventClasses;
use crate::layout::ValueType;
use crate::limits::{SORT_ANSWER_BYTES_MAX, SORT_VALUES_MAX};
use crate::reply::Reply;
use crate::types::list::End;
use crate::types::sort::{SortBy, SortQuery};
use crate::types::{ReadContext, WriteContext};

/// The arguments of SORT.
struct Sort<'a> {
    query: SortQuery,
    /// What GET asks for each element.
    gets: Vec<Get>,
    destination: Option<&'a Bytes>,
}

/// What one GET asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Get {
    /// The element itself: `#`.
    Element,
    /// A string or a field of a hash, which Quoin has not.
    Absent,
}

/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC|DESC] [ALPHA]
/// [STORE destination]` → elements, or how many were stored.
pub(super) async fn sort(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let sort = Sort::parse(arguments, true)?;
    let elements = sort.elements(context, argument(arguments, 1)?).await?;
    let Some(destination) = sort.destination else {
        return sort.answer(elements);
    };
    if elements.is_empty() {
        if let Some(old) = context.find_any(destination).await? {
            context.remove(&old);
            context.notify(EventClasses::GENERIC, "del", destination);
        }
        return Ok(Reply::Integer(0));
    }
    sort.check_storable(context, &elements)?;
    let values = sort.values(elements);
    let values: Vec<Bytes> = values.map(Option::unwrap_or_default).collect();
    let key = context.create(destination, ValueType::List, None).await?;
    context.list_push(&key, &values, End::Right).await?;
    context.notify(EventClasses::LIST, "sortstore", destination);
    Ok(Reply::count(values.len()))
}

/// `SORT_RO key …`: as SORT, without STORE.
pub(super) async fn sort_ro(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let sort = Sort::parse(arguments, false)?;
    sort.answer(sort.elements(context, argument(arguments, 1)?).await?)
}

impl<'a> Sort<'a> {
    fn parse(arguments: &'a [Bytes], may_store: bool) -> Result<Self, CommandError> {
        let mut sort = Self {
            query: SortQuery {
                by: SortBy::Element,
                descending: false,
                alphabetic: false,
                offset: 0,
                count: -1,
            },
            gets: Vec::new(),
            destination: None,
        };
        // As in Redis, a constant BY turns sorting off for good, whatever BY comes later.
        let mut is_constant = false;
        let mut options = rest(arguments, 2);
        loop {
            options = match options {
                [] => break,
                [option, behind @ ..] if is_word(option, "asc") => {
                    sort.query.descending = false;
                    behind
                }
                [option, behind @ ..] if is_word(option, "desc") => {
                    sort.query.descending = true;
                    behind
                }
                [option, behind @ ..] if is_word(option, "alpha") => {
                    sort.query.alphabetic = true;
                    behind
                }
                [option, offset, count, behind @ ..] if is_word(option, "limit") => {
                    sort.query.offset = integer(offset)?;
                    sort.query.count = integer(count)?;
                    behind
                }
                [option, destination, behind @ ..] if may_store && is_word(option, "store") => {
                    sort.destination = Some(destination);
                    behind
                }
                [option, pattern, behind @ ..] if is_word(option, "by") => {
                    is_constant |= !has_star(pattern);
                    sort.query.by = SortBy::AbsentWeights;
                    behind
                }
                [option, pattern, behind @ ..] if is_word(option, "get") => {
                    sort.gets.push(if c_string(pattern) == b"#" {
                        Get::Element
                    } else {
                        Get::Absent
                    });
                    behind
                }
                _ => return Err(CommandError::Syntax),
            };
        }
        if is_constant {
            sort.query.by = SortBy::Nothing;
        }
        Ok(sort)
    }

    /// The elements of the result, of which there are not too many for what GET makes of each.
    async fn elements(
        &self,
        context: &ReadContext<'_>,
        name: &Bytes,
    ) -> Result<Vec<Bytes>, CommandError> {
        let Some(key) = context.find_any(name).await? else {
            return Ok(Vec::new());
        };
        let mut query = self.query;
        if key.meta.value_type == ValueType::Set
            && self.destination.is_some()
            && query.by == SortBy::Nothing
        {
            // As in Redis: what is stored must not depend on the order in which a set lies.
            query.by = SortBy::Element;
            query.alphabetic = true;
        }
        let elements = context.sort(&key, &query).await?;
        check_value_count(elements.len(), self.gets.len())?;
        Ok(elements)
    }

    /// How often each element stands in the result.
    fn repetitions(&self) -> usize {
        if self.gets.is_empty() {
            return 1;
        }
        self.gets.iter().filter(|get| **get == Get::Element).count()
    }

    /// The reply, which is refused where GET makes too much of the elements: a reply is in memory
    /// at once.
    fn answer(&self, elements: Vec<Bytes>) -> Result<Reply, CommandError> {
        let element_bytes: usize = elements.iter().map(Bytes::len).sum();
        let answer_bytes = element_bytes.saturating_mul(self.repetitions());
        if answer_bytes > SORT_ANSWER_BYTES_MAX.max(element_bytes) {
            let line = format!(
                "ERR too long an answer of SORT with GET (more than {SORT_ANSWER_BYTES_MAX} bytes)"
            );
            return Err(CommandError::Text(line.into()));
        }
        let values = self.values(elements);
        let values = values.map(|value| value.map_or(Reply::Null, Reply::Bulk));
        Ok(Reply::Array(values.collect()))
    }

    /// Refuses what one transaction cannot hold, before anything of it is made.
    fn check_storable(
        &self,
        context: &WriteContext<'_>,
        elements: &[Bytes],
    ) -> Result<(), CommandError> {
        let repetitions = self.repetitions();
        // What is not there is stored as an empty element.
        let absent_count = self.gets.len().saturating_sub(repetitions);
        let mut budget = context.size_budget();
        for element in elements {
            budget.take_elements(element.len(), repetitions)?;
            budget.take_elements(0, absent_count)?;
        }
        Ok(())
    }

    /// The result: of each element itself, or what each GET finds for it.
    fn values(&self, elements: Vec<Bytes>) -> impl Iterator<Item = Option<Bytes>> {
        let gets = match self.gets.as_slice() {
            [] => &[Get::Element],
            gets => gets,
        };
        elements.into_iter().flat_map(move |element| {
            gets.iter()
                .map(move |get| (*get == Get::Element).then(|| element.clone()))
        })
    }
}

/// Whether so many times GET make not too much of so many elements: each element at least can be
/// asked for, as without GET.
pub(super) fn check_value_count(
    element_count: usize,
    get_count: usize,
) -> Result<(), CommandError> {
    let value_count = element_count.saturating_mul(get_count);
    if value_count > SORT_VALUES_MAX && get_count > 1 {
        return Err(CommandError::Text(
            format!("ERR too many values for SORT with GET (more than {SORT_VALUES_MAX})").into(),
        ));
    }
    Ok(())
}

/// Whether a pattern has a place for the element.
fn has_star(pattern: &[u8]) -> bool {
    c_string(pattern).contains(&b'*')
}

/// What Redis sees of a pattern where it takes it for a C string: what is in front of a zero byte.
fn c_string(pattern: &[u8]) -> &[u8] {
    pattern.split(|byte| *byte == 0).next().unwrap_or_default()
}
