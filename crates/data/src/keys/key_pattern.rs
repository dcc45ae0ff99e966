//! Patterns that lead from an element of a list or set to the value of another key: BY and GET of
//! SORT.

use bytes::Bytes;

use crate::error::CommandError;
use quoin_layout::ValueType;

use crate::hash::Hash;
use crate::keyspace::key::OpenKey;
use crate::string::StringValue;
use crate::unit::context::ReadContext;

/// A name of keys with a place for an element: `weight_*`, or `job_*->priority` for the field of a
/// hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPattern {
    before: Bytes,
    after: Bytes,
    field: Option<Bytes>,
}

impl KeyPattern {
    /// Reads a pattern as `lookupKeyByPattern` of Redis does, which looks for the star and the arrow
    /// in front of the first zero byte. `None` where there is no star.
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
    /// What patterns lead to from elements, one value for each pair: a string, or a field of a
    /// hash. Takes the bytes of all from `left_bytes`; `None` where there are not as many left.
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
