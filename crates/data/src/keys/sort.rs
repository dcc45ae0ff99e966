//! SORT and SORT_RO, on lists, sets and sorted sets.
//!
//! BY and GET have patterns that lead from an element to the value of another key.

use std::cmp::Ordering;

use bytes::Bytes;
use quoin_base::events::EventClasses;
use quoin_base::limits::{KEY_READS_AT_ONCE, SORT_ANSWER_BYTES_MAX, SORT_VALUES_MAX};
use quoin_base::number::parse_double_without_underflow;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

use crate::command::arguments::{argument, integer, is_word, rest};
use crate::error::CommandError;
use crate::hash::Hash;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::{Slice, TypeKind};
use crate::list::{End, ListMut};
use crate::string::StringValue;
use crate::unit::context::{ReadContext, WriteContext};

const BY_DENIED: CommandError =
    CommandError::text("ERR BY option of SORT denied due to insufficient ACL permissions.");
const GET_DENIED: CommandError =
    CommandError::text("ERR GET option of SORT denied due to insufficient ACL permissions.");

/// The arguments of SORT.
struct Sort<'a> {
    query: SortQuery,
    /// What GET requests for each element.
    gets: Vec<Get>,
    destination: Option<&'a Bytes>,
}

/// What one GET requests.
enum Get {
    /// The element itself: `#`.
    Element,
    /// The value that a pattern leads to.
    Value(KeyPattern),
    /// Nothing: a pattern without a place for the element.
    Absent,
}

/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC|DESC] [ALPHA] [STORE destination]` → elements, or
/// the number of elements stored.
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

/// `SORT_RO key …`: SORT without STORE.
pub(super) async fn sort_ro(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let sort = Sort::parse(arguments, false, context.lacks_named_keys)?;
    let elements = sort.elements(context, argument(arguments, 1)?).await?;
    sort.answer(context, elements).await
}

impl<'a> Sort<'a> {
    /// `lacks_named_keys`: the client may not read the keys that elements name.
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
        // As in Redis, a constant BY turns sorting off permanently, even if another BY follows.
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

    /// The elements of the result. Fails if GET would produce too many values for them.
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
            // As in Redis, stored results and results that a script sees must not depend on the internal order of a
            // set.
            query.by = SortBy::Element;
            query.alphabetic = true;
        }
        let elements = context.sort(&key, &query).await?;
        check_value_count(elements.len(), self.gets.len())?;
        Ok(elements)
    }

    /// The reply. Fails if the values of GET are too large, because the whole reply is held in memory.
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

    /// The elements that STORE puts into its list. Fails if one transaction cannot hold them.
    async fn storable_values(
        &self,
        context: &ReadContext<'_>,
        elements: &[Bytes],
    ) -> Result<Vec<Bytes>, CommandError> {
        let mut budget = context.size_budget();
        let bytes_max = context.environment.capabilities.transaction_bytes_max as u64;
        // A missing value is stored as an empty element.
        let take =
            |value: &Option<Bytes>| budget.take_element(value.as_ref().map_or(0, Bytes::len));
        let values = self.values(context, elements, bytes_max, take).await?;
        let values = values.ok_or(CommandError::TooLarge)?.into_iter();
        Ok(values.map(Option::unwrap_or_default).collect())
    }

    /// The result: each element itself, or what each GET finds for it. `take` is called for each value. `None` if the
    /// values together have more than `bytes_max` bytes.
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

/// Checks that GET does not produce too many values. Like SORT without GET, a single GET is always allowed.
pub fn check_value_count(element_count: usize, get_count: usize) -> Result<(), CommandError> {
    let value_count = element_count.saturating_mul(get_count);
    if value_count > SORT_VALUES_MAX && get_count > 1 {
        return Err(CommandError::Text(
            format!("ERR too many values for SORT with GET (more than {SORT_VALUES_MAX})").into(),
        ));
    }
    Ok(())
}

/// The part of a pattern that Redis sees as a C string: everything before the first zero byte.
fn c_string(pattern: &[u8]) -> &[u8] {
    pattern.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// The sort key of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SortBy {
    /// The element itself.
    Element,
    /// The value that a pattern leads to from each element, if any.
    Weights(KeyPattern),
    /// None: elements keep the order of the list or set.
    Nothing,
}

/// The query of a SORT.
#[derive(Debug, Clone)]
pub struct SortQuery {
    /// What to sort by.
    pub by: SortBy,
    /// In descending order.
    pub descending: bool,
    /// By bytes instead of by number.
    pub alphabetic: bool,
    /// Elements to skip at the beginning of the result; a negative value means 0.
    pub offset: i64,
    /// Most elements to return; a negative value means all.
    pub count: i64,
}

impl SortQuery {
    /// The requested range of a result of `length` elements: begin and end.
    fn bounds(&self, length: i64) -> (i64, i64) {
        let begin = self.offset.clamp(0, length);
        let end = if self.count < 0 {
            length
        } else {
            begin.saturating_add(self.count).min(length)
        };
        (begin, end)
    }
}

impl ReadContext<'_> {
    /// The elements of a list, or the members of a set or sorted set, in SORT's order.
    ///
    /// # Errors
    /// `WrongType` for other types; `Text` if an element to be sorted as a number is not a number.
    pub async fn sort(&self, key: &OpenKey, query: &SortQuery) -> Result<Vec<Bytes>, CommandError> {
        let Some(slice_of) = key.meta.value_type.kind().slice else {
            return Err(CommandError::WrongType);
        };
        let length = self.length(key, self.isolation).await?;
        let (begin, end) = query.bounds(length);
        if query.by == SortBy::Nothing {
            if begin == end {
                return Ok(Vec::new());
            }
            let slice = Slice {
                begin,
                end,
                length,
                descending: query.descending,
            };
            return Ok(slice_of(self, key, slice).await?);
        }
        let all = Slice {
            begin: 0,
            end: length,
            length,
            descending: false,
        };
        let elements = slice_of(self, key, all).await?;
        let sorted = match (&query.by, query.alphabetic) {
            (SortBy::Weights(pattern), true) => {
                self.sort_by_texts(elements, pattern, query).await?
            }
            (SortBy::Weights(pattern), false) => {
                let weights = self.weights(&elements, pattern).await?;
                sort_by_numbers(weights.into_iter().zip(elements), query)
            }
            (_, true) => sort_by_numbers(elements.into_iter().map(|element| (0.0, element)), query),
            (_, false) => {
                let weights: Result<Vec<f64>, _> =
                    elements.iter().map(|element| weight(element)).collect();
                sort_by_numbers(weights?.into_iter().zip(elements), query)
            }
        };
        let skipped = usize::try_from(begin).unwrap_or(usize::MAX);
        let taken = usize::try_from(end - begin).unwrap_or(0);
        Ok(sorted.into_iter().skip(skipped).take(taken).collect())
    }

    /// The numbers that a pattern leads to. A missing value counts as 0.
    async fn weights(
        &self,
        elements: &[Bytes],
        pattern: &KeyPattern,
    ) -> Result<Vec<f64>, CommandError> {
        let mut weights = Vec::with_capacity(elements.len());
        for some in elements.chunks(KEY_READS_AT_ONCE) {
            let mut left_bytes = SORT_ANSWER_BYTES_MAX as u64;
            for text in self.texts(some, pattern, &mut left_bytes).await? {
                weights.push(text.map_or(Ok(0.0), |text| weight(&text))?);
            }
        }
        Ok(weights)
    }

    async fn sort_by_texts(
        &self,
        elements: Vec<Bytes>,
        pattern: &KeyPattern,
        query: &SortQuery,
    ) -> Result<Vec<Bytes>, CommandError> {
        let mut left_bytes = SORT_ANSWER_BYTES_MAX as u64;
        let mut texts = Vec::with_capacity(elements.len());
        for some in elements.chunks(KEY_READS_AT_ONCE) {
            texts.extend(self.texts(some, pattern, &mut left_bytes).await?);
        }
        let mut weighted: Vec<(Option<Bytes>, Bytes)> = texts.into_iter().zip(elements).collect();
        // Redis does not specify the order of equal elements.
        weighted.sort_by(|(first, _), (second, _)| query.directed(first.cmp(second)));
        Ok(weighted.into_iter().map(|(_, element)| element).collect())
    }

    async fn texts(
        &self,
        elements: &[Bytes],
        pattern: &KeyPattern,
        left_bytes: &mut u64,
    ) -> Result<Vec<Option<Bytes>>, CommandError> {
        let pairs: Vec<_> = elements.iter().map(|element| (pattern, element)).collect();
        let texts = self.values_of_patterns(&pairs, left_bytes).await?;
        texts.ok_or_else(|| {
            let line = format!(
                "ERR too long values for SORT with BY (more than {SORT_ANSWER_BYTES_MAX} bytes)"
            );
            CommandError::Text(line.into())
        })
    }
}

impl SortQuery {
    fn directed(&self, order: Ordering) -> Ordering {
        if self.descending {
            order.reverse()
        } else {
            order
        }
    }
}

/// Elements of equal weight are ordered by their bytes, as in Redis.
fn sort_by_numbers(weighted: impl Iterator<Item = (f64, Bytes)>, query: &SortQuery) -> Vec<Bytes> {
    let mut weighted: Vec<(f64, Bytes)> = weighted.collect();
    weighted.sort_by(|(first_weight, first), (second_weight, second)| {
        let by_weight = first_weight.partial_cmp(second_weight);
        let order = by_weight.unwrap_or(Ordering::Equal);
        query.directed(order.then_with(|| first.cmp(second)))
    });
    weighted.into_iter().map(|(_, element)| element).collect()
}

/// An element as a number, read as by C's `strtod` in Redis: leading blanks are skipped, anything after a zero byte is
/// ignored, and an empty text is 0.
fn weight(element: &[u8]) -> Result<f64, CommandError> {
    const NO_NUMBER: CommandError =
        CommandError::text("ERR One or more scores can't be converted into double");
    let text = element.split(|byte| *byte == 0).next().unwrap_or(element);
    if text.is_empty() {
        return Ok(0.0);
    }
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let blanks = text.iter().take_while(|byte| is_blank(byte)).count();
    parse_double_without_underflow(text.get(blanks..).unwrap_or_default()).ok_or(NO_NUMBER)
}

/// A key name with a place for an element: `weight_*`, or `job_*->priority` for the field of a hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPattern {
    before: Bytes,
    after: Bytes,
    field: Option<Bytes>,
}

impl KeyPattern {
    /// Parses a pattern as Redis's `lookupKeyByPattern` does, which looks for the star and the arrow before the first
    /// zero byte. `None` if there is no star.
    pub fn parse(pattern: &Bytes) -> Option<Self> {
        let shown = pattern.split(|byte| *byte == 0).next().unwrap_or_default();
        let star = shown.iter().position(|byte| *byte == b'*')?;
        let (before, after) = (pattern.slice(..star), pattern.slice(star + 1..));
        let rest = shown.get(star + 1..).unwrap_or_default();
        let arrow = rest.windows(2).position(|two| two == b"->");
        let arrow = arrow.filter(|arrow| rest.len() > arrow + 2);
        Some(match arrow {
            Some(arrow) => Self {
                before,
                field: Some(after.slice(arrow + 2..)),
                after: after.slice(..arrow),
            },
            None => Self {
                before,
                after,
                field: None,
            },
        })
    }

    fn key_of(&self, element: &[u8]) -> Bytes {
        [&self.before, element, &self.after].concat().into()
    }
}

impl ReadContext<'_> {
    /// The values that patterns lead to from elements, one for each pair: a string, or a field of a hash. Subtracts the
    /// size of all values from `left_bytes`. `None` if that is too small.
    pub async fn values_of_patterns(
        &self,
        pairs: &[(&KeyPattern, &Bytes)],
        left_bytes: &mut u64,
    ) -> Result<Option<Vec<Option<Bytes>>>, CommandError> {
        let names = pairs
            .iter()
            .map(|(pattern, element)| pattern.key_of(element));
        let names: Vec<Bytes> = names.collect();
        let keys = self.find_each(&names).await?;
        let mut values = Vec::with_capacity(keys.len());
        for (key, (pattern, _)) in keys.into_iter().zip(pairs) {
            let value = match (key, &pattern.field) {
                (None, _) => None,
                (Some(key), Some(field)) => self.hash_field(&key, field).await?,
                (Some(key), None) if key.meta.value_type == ValueType::String => {
                    let string = StringValue::open(self, &key);
                    // Checks the length before it reads the value.
                    if string.length().await? > *left_bytes {
                        return Ok(None);
                    }
                    Some(string.get().await?)
                }
                (Some(_), None) => None,
            };
            let bytes = value.as_ref().map_or(0, Bytes::len) as u64;
            let Some(left) = left_bytes.checked_sub(bytes) else {
                return Ok(None);
            };
            *left_bytes = left;
            values.push(value);
        }
        Ok(Some(values))
    }

    async fn hash_field(
        &self,
        key: &OpenKey,
        field: &Bytes,
    ) -> Result<Option<Bytes>, CommandError> {
        match key.meta.value_type {
            ValueType::Hash => Ok(Hash::open(self, key).get(field).await?),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read_as_strtod_reads_them() {
        for (text, expected) in [
            (&b""[..], Some(0.0)),
            (b"\0x", Some(0.0)),
            (b" \t12", Some(12.0)),
            (b"1.5e3", Some(1500.0)),
            (b"0x10", Some(16.0)),
            (b"-inf", Some(f64::NEG_INFINITY)),
            (b"0x1p-1074", Some(f64::from_bits(1))),
            (b"7\0abc", Some(7.0)),
            (b" ", None),
            (b"12 ", None),
            (b"nan", None),
            (b"1e400", None),
            (b"1e-310", None),
            (b"abc", None),
        ] {
            assert_eq!(weight(text).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn patterns_are_read_as_redis_reads_them() {
        for (pattern, key, field) in [
            ("w_*", "w_x", None),
            ("*", "x", None),
            ("a*b*c", "axb*c", None),
            ("h_*->f", "h_x", Some("f")),
            ("h_*s->f->g", "h_xs", Some("f->g")),
            ("h_*->", "h_x->", None),
            ("->*", "->x", None),
            ("w*\0->f", "wx\0->f", None),
            ("h*->f\0g", "hx", Some("f\0g")),
        ] {
            let parsed = KeyPattern::parse(&Bytes::from(pattern)).unwrap();
            assert_eq!(parsed.key_of(b"x"), key, "{pattern}");
            assert_eq!(
                parsed.field.as_deref(),
                field.map(str::as_bytes),
                "{pattern}"
            );
        }
        for pattern in ["nosort", "", "w\0*"] {
            assert_eq!(KeyPattern::parse(&Bytes::from(pattern)), None);
        }
    }
}
