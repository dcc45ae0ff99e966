//! SORT and SORT_RO.

use bytes::Bytes;

use crate::commands::arguments::{argument, integer, is_word, rest};
use crate::error::CommandError;
use crate::events::EventClasses;
use crate::layout::ValueType;
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
    let rows = sort.run(context, argument(arguments, 1)?).await?;
    let Some(destination) = sort.destination else {
        return Ok(reply(rows));
    };
    if rows.is_empty() {
        if let Some(old) = context.find_any(destination).await? {
            context.remove(&old);
            context.notify(EventClasses::GENERIC, "del", destination);
        }
        return Ok(Reply::Integer(0));
    }
    let values: Vec<Bytes> = rows.into_iter().map(Option::unwrap_or_default).collect();
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
    Ok(reply(sort.run(context, argument(arguments, 1)?).await?))
}

fn reply(rows: Vec<Option<Bytes>>) -> Reply {
    let cells = rows
        .into_iter()
        .map(|cell| cell.map_or(Reply::Null, Reply::Bulk));
    Reply::Array(cells.collect())
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
                    sort.gets.push(if pattern.as_ref() == b"#" {
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

    /// The result, cell by cell: the element, or what each GET finds for it.
    async fn run(
        &self,
        context: &ReadContext<'_>,
        name: &Bytes,
    ) -> Result<Vec<Option<Bytes>>, CommandError> {
        let Some(key) = context.find_any(name).await? else {
            return Ok(Vec::new());
        };
        let elements = context.sort(&key, &self.query).await?;
        if self.gets.is_empty() {
            return Ok(elements.into_iter().map(Some).collect());
        }
        let cells = elements.iter().flat_map(|element| {
            self.gets
                .iter()
                .map(|get| (*get == Get::Element).then(|| element.clone()))
        });
        Ok(cells.collect())
    }
}

/// Whether a pattern has a place for the element, before any zero byte.
fn has_star(pattern: &[u8]) -> bool {
    pattern
        .iter()
        .take_while(|byte| **byte != 0)
        .any(|byte| *byte == b'*')
}
