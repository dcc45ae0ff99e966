//! SORT and SORT_RO.

use bytes::Bytes;

use crate::command::arguments::{argument, integer, is_word, rest};
use crate::error::CommandError;
use crate::keys::key_pattern::KeyPattern;
use crate::keys::sort::{SortBy, SortQuery};
use crate::list::{End, ListMut};
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_base::limits::{KEY_READS_AT_ONCE, SORT_ANSWER_BYTES_MAX, SORT_VALUES_MAX};
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

const BY_DENIED: CommandError =
    CommandError::text("ERR BY option of SORT denied due to insufficient ACL permissions.");
const GET_DENIED: CommandError =
    CommandError::text("ERR GET option of SORT denied due to insufficient ACL permissions.");

/// The arguments of SORT.
struct Sort<'a> {
    query: SortQuery,
    /// What GET asks for each element.
    gets: Vec<Get>,
    destination: Option<&'a Bytes>,
}

/// What one GET asks for.
enum Get {
    /// The element itself: `#`.
    Element,
    /// The value that a pattern leads to.
    Value(KeyPattern),
    /// Nothing: a pattern without a place for the element.
    Absent,
}

/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC|DESC] [ALPHA]
/// [STORE destination]` → elements, or how many were stored.
pub async fn sort(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let sort = Sort::parse(arguments, true, context.lacks_named_keys)?;
    let elements = sort.elements(context, argument(arguments, 1)?).await?;
    let Some(destination) = sort.destination else {
        return sort.answer(context, elements).await;
    };
    if elements.is_empty() {
        if let Some(old) = context.find_any(destination).await? {
            context.remove(&old);
            context.notify(EventClasses::GENERIC, "del", destination);
        }
        return Ok(Reply::Integer(0));
    }
    let values = sort.storable_values(context, &elements).await?;
    let key = context.create(destination, ValueType::List, None).await?;
    let list = ListMut::open(context, &key);
    list.push(&values, End::Right).await?;
    context.notify(EventClasses::LIST, "sortstore", destination);
    Ok(Reply::count(values.len()))
}

/// `SORT_RO key …`: as SORT, without STORE.
pub(super) async fn sort_ro(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let sort = Sort::parse(arguments, false, context.lacks_named_keys)?;
    let elements = sort.elements(context, argument(arguments, 1)?).await?;
    sort.answer(context, elements).await
}

impl<'a> Sort<'a> {
    /// `lacks_named_keys`: the client may not read keys that elements name.
    fn parse(
        arguments: &'a [Bytes],
        may_store: bool,
        lacks_named_keys: bool,
    ) -> Result<Self, CommandError> {
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
                    match KeyPattern::parse(pattern) {
                        Some(_) if lacks_named_keys => return Err(BY_DENIED),
                        Some(pattern) => sort.query.by = SortBy::Weights(pattern),
                        None => is_constant = true,
                    }
                    behind
                }
                [option, _, ..] if lacks_named_keys && is_word(option, "get") => {
                    return Err(GET_DENIED);
                }
                [option, pattern, behind @ ..] if is_word(option, "get") => {
                    sort.gets.push(match KeyPattern::parse(pattern) {
                        Some(pattern) => Get::Value(pattern),
                        None if c_string(pattern) == b"#" => Get::Element,
                        None => Get::Absent,
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
        let mut query = self.query.clone();
        if key.meta.value_type == ValueType::Set
            && (self.destination.is_some() || context.is_in_script)
            && query.by == SortBy::Nothing
        {
            // As in Redis: what is stored, or what a script sees, must not depend on the order in
            // which a set lies.
            query.by = SortBy::Element;
            query.alphabetic = true;
        }
        let elements = context.sort(&key, &query).await?;
        check_value_count(elements.len(), self.gets.len())?;
        Ok(elements)
    }

    /// The reply, which is refused where GET makes too much of the elements: a reply is in memory
    /// at once.
    async fn answer(
        &self,
        context: &ReadContext<'_>,
        elements: Vec<Bytes>,
    ) -> Result<Reply, CommandError> {
        let element_bytes: usize = elements.iter().map(Bytes::len).sum();
        let bytes_max = SORT_ANSWER_BYTES_MAX.max(element_bytes) as u64;
        let values = self.values(context, &elements, bytes_max, |_| Ok(()));
        let values = values.await?.ok_or_else(|| {
            let line = format!(
                "ERR too long an answer of SORT with GET (more than {SORT_ANSWER_BYTES_MAX} bytes)"
            );
            CommandError::Text(line.into())
        })?;
        let values = values.into_iter();
        let values = values.map(|value| value.map_or(Reply::Null, Reply::Bulk));
        Ok(Reply::Array(values.collect()))
    }

    /// What STORE puts into its list; refused where one transaction cannot hold it.
    async fn storable_values(
        &self,
        context: &ReadContext<'_>,
        elements: &[Bytes],
    ) -> Result<Vec<Bytes>, CommandError> {
        let mut budget = context.size_budget();
        let bytes_max = context.environment.capabilities.transaction_bytes_max as u64;
        // What is not there is stored as an empty element.
        let take =
            |value: &Option<Bytes>| budget.take_element(value.as_ref().map_or(0, Bytes::len));
        let values = self.values(context, elements, bytes_max, take).await?;
        let values = values.ok_or(CommandError::TooLarge)?.into_iter();
        Ok(values.map(Option::unwrap_or_default).collect())
    }

    /// The result: of each element itself, or what each GET finds for it. `take` is asked of each
    /// value. `None` where the values have more than `bytes_max` bytes together.
    async fn values(
        &self,
        context: &ReadContext<'_>,
        elements: &[Bytes],
        bytes_max: u64,
        mut take: impl FnMut(&Option<Bytes>) -> Result<(), CommandError>,
    ) -> Result<Option<Vec<Option<Bytes>>>, CommandError> {
        let gets = match self.gets.as_slice() {
            [] => &[Get::Element],
            gets => gets,
        };
        let mut asked = { elements.iter() }
            .flat_map(|element| gets.iter().map(move |get| (get, element)))
            .peekable();
        let mut left_bytes = bytes_max;
        let mut values = Vec::new();
        while asked.peek().is_some() {
            let some: Vec<(&Get, &Bytes)> = asked.by_ref().take(KEY_READS_AT_ONCE).collect();
            let pairs = some.iter().filter_map(|(get, element)| match get {
                Get::Value(pattern) => Some((pattern, *element)),
                Get::Element | Get::Absent => None,
            });
            let pairs: Vec<_> = pairs.collect();
            let found = context.values_of_patterns(&pairs, &mut left_bytes).await?;
            let Some(found) = found else {
                return Ok(None);
            };
            let mut found = found.into_iter();
            for (get, element) in some {
                let value = match get {
                    Get::Value(_) => found.next().flatten(),
                    Get::Absent => None,
                    Get::Element => {
                        let Some(left) = left_bytes.checked_sub(element.len() as u64) else {
                            return Ok(None);
                        };
                        left_bytes = left;
                        Some(element.clone())
                    }
                };
                take(&value)?;
                values.push(value);
            }
        }
        Ok(Some(values))
    }
}

/// Whether so many times GET make not too much of so many elements: each element at least can be
/// asked for, as without GET.
pub fn check_value_count(element_count: usize, get_count: usize) -> Result<(), CommandError> {
    let value_count = element_count.saturating_mul(get_count);
    if value_count > SORT_VALUES_MAX && get_count > 1 {
        return Err(CommandError::Text(
            format!("ERR too many values for SORT with GET (more than {SORT_VALUES_MAX})").into(),
        ));
    }
    Ok(())
}

/// What Redis sees of a pattern where it takes it for a C string: what is in front of a zero byte.
fn c_string(pattern: &[u8]) -> &[u8] {
    pattern.split(|byte| *byte == 0).next().unwrap_or_default()
}
