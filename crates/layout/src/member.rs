//! Members of sorted sets in the score index and in the member index; elements of lists.

use std::borrow::Cow;

use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, pack_into};

use super::name::{NameDigest, digest, hash48};
use super::{
    DecodeError, Id, KeyRange, Layout, Position, Section, corrupt, next_is_nil, take, with_byte,
};
use quoin_base::limits::INLINE_NAME_BYTES_MAX;

/// A member and its form in keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    bytes: Bytes,
    long_digest: Option<NameDigest>,
}

impl Member {
    /// The form of `bytes` in keys.
    pub fn new(bytes: &Bytes) -> Self {
        Self {
            bytes: bytes.clone(),
            long_digest: (bytes.len() > INLINE_NAME_BYTES_MAX).then(|| digest(bytes)),
        }
    }

    /// The member's bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The member, if a key can hold all of it.
    pub fn inline(&self) -> Option<Bytes> {
        (!self.is_long()).then(|| self.bytes.clone())
    }

    /// Whether only a prefix of the member fits into a key.
    pub fn is_long(&self) -> bool {
        self.long_digest.is_some()
    }

    /// The part of the member in the score index: all of it, or its first [`INLINE_NAME_BYTES_MAX`] bytes.
    pub fn indexed_prefix(&self) -> &[u8] {
        indexed_prefix(&self.bytes)
    }
}

/// The part of a member (or of a bound to members) that the score index's keys can hold.
pub fn indexed_prefix(member: &[u8]) -> &[u8] {
    member.get(..INLINE_NAME_BYTES_MAX).unwrap_or(member)
}

/// A key of the score index: `(score, member) = ""`, or for a long member
/// `(score, prefix, label…) = the full member as a stored value`. Labels order the long members
/// that share a prefix. So the order of keys is Redis's order: score, then bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreEntry {
    /// The score.
    pub score: f64,
    /// The member, or the prefix of a long one.
    pub prefix: Bytes,
    /// The place of a long member among those with its prefix. `None` if `prefix` is the member.
    pub label: Option<Position>,
}

/// The value in the member index at `(hash, member)`, or `(hash, nil, digest)` for a long one.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberEntry {
    /// The member's score.
    pub score: f64,
    /// The place of a long member in the score index, in addition to its score.
    pub long: Option<LongPlace>,
}

/// Prefix and label of a long member. Together with its score, they make its key in the score
/// index.
#[derive(Debug, Clone, PartialEq)]
pub struct LongPlace {
    /// The member's first bytes.
    pub prefix: Bytes,
    /// Its place among the long members with the same score and prefix.
    pub label: Position,
}

impl MemberEntry {
    /// The stored form: the tuple `(score)`, or `(score, prefix, label…)` of a long member.
    pub fn encode(&self) -> Vec<u8> {
        let mut value = foundationdb_tuple::pack(&(normal_score(self.score),));
        if let Some(long) = &self.long {
            pack_into(&(long.prefix.as_ref(),), &mut value);
            long.label.pack_into(&mut value);
        }
        value
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// If it is not one.
    pub fn decode(mut value: &[u8]) -> Result<Self, DecodeError> {
        let score = take(&mut value, "score")?;
        if value.is_empty() {
            return Ok(Self { score, long: None });
        }
        let prefix: TupleBytes<'_> = take(&mut value, "prefix of a long member")?;
        let prefix = Bytes::from(prefix.into_owned());
        let label = Position::take_all(&mut value)?;
        let long = Some(LongPlace { prefix, label });
        Ok(Self { score, long })
    }
}

/// Scores are stored with −0 as 0, so that equal scores have equal keys. NaN is refused earlier.
pub fn normal_score(score: f64) -> f64 {
    if score == 0.0 { 0.0 } else { score }
}

/// Reads the keys of a section in the order of hashes.
#[derive(Debug)]
pub struct HashedKeys {
    prefix: Vec<u8>,
}

impl HashedKeys {
    /// The hash in a key, and the member unless it is long.
    ///
    /// # Errors
    /// If the key is not of the section.
    pub fn read(&self, key: &Bytes) -> Result<(u64, Option<Bytes>), DecodeError> {
        let Some(mut rest) = key.strip_prefix(self.prefix.as_slice()) else {
            return corrupt("key of a member by hash");
        };
        let hash = take(&mut rest, "member hash")?;
        if next_is_nil(rest) {
            return Ok((hash, None));
        }
        let member: TupleBytes<'_> = take(&mut rest, "member")?;
        let member = match member.0 {
            Cow::Borrowed(member) => key.slice_ref(member),
            Cow::Owned(member) => member.into(),
        };
        Ok((hash, Some(member)))
    }
}

impl Layout {
    /// Prefix of a data id's score index.
    pub fn scores_prefix(&self, data: Id) -> Vec<u8> {
        self.section_prefix(data, Section::Scores)
    }

    /// Key in the score index; `label` for a long member.
    pub fn score_key(
        &self,
        data: Id,
        score: f64,
        indexed_prefix: &[u8],
        label: Option<&Position>,
    ) -> Vec<u8> {
        let mut key = self.scores_prefix(data);
        pack_into(&(normal_score(score), indexed_prefix), &mut key);
        if let Some(label) = label {
            label.pack_into(&mut key);
        }
        key
    }

    /// The long members of one score that share a prefix.
    pub fn long_members(&self, data: Id, score: f64, indexed_prefix: &[u8]) -> KeyRange {
        KeyRange::children(&self.score_key(data, score, indexed_prefix, None))
    }

    /// First key of the score index whose score is at least `score` (`above` = false), or
    /// greater than it (`above` = true).
    pub fn score_bound(&self, data: Id, score: f64, above: bool) -> Vec<u8> {
        let mut key = self.scores_prefix(data);
        pack_into(&(normal_score(score),), &mut key);
        with_byte(&key, if above { 0xff } else { 0x00 })
    }

    /// Reads a key of the score index whose prefix has `prefix_length` bytes.
    ///
    /// # Errors
    /// If the key is not of a score index.
    pub fn read_score_key(
        &self,
        prefix_length: usize,
        key: &[u8],
    ) -> Result<ScoreEntry, DecodeError> {
        let Some(mut rest) = key.get(prefix_length..) else {
            return corrupt("score index key");
        };
        let score = take(&mut rest, "score")?;
        let prefix: TupleBytes<'_> = take(&mut rest, "member")?;
        let prefix = Bytes::from(prefix.into_owned());
        let label = if rest.is_empty() {
            None
        } else {
            Some(Position::take_all(&mut rest)?)
        };
        Ok(ScoreEntry {
            score,
            prefix,
            label,
        })
    }

    /// Key in the member index.
    pub fn member_key(&self, data: Id, member: &Member) -> Vec<u8> {
        self.hashed_key(data, Section::Members, member)
    }

    /// The keys of the member index. The full bytes of a long member are in its row in the score
    /// index, which its [`LongPlace`] names.
    pub fn member_keys(&self, data: Id) -> HashedKeys {
        self.hashed_keys(data, Section::Members)
    }

    /// Key of a member in a section ordered by hashes: `(hash, member)`, or `(hash, nil, digest)`
    /// for a long one.
    pub fn hashed_key(&self, data: Id, section: Section, member: &Member) -> Vec<u8> {
        let mut key = self.section_prefix(data, section);
        pack_into(&(hash48(&member.bytes),), &mut key);
        match &member.long_digest {
            None => {
                pack_into(&(member.bytes.as_ref(),), &mut key);
            }
            Some(digest) => {
                pack_into(&(None::<i64>, digest.as_slice()), &mut key);
            }
        }
        key
    }

    /// A section in the order of hashes, from a hash onwards.
    pub fn hashed_from(&self, data: Id, section: Section, hash: u64) -> KeyRange {
        let all = self.section_prefix(data, section);
        let mut begin = all.clone();
        pack_into(&(hash,), &mut begin);
        KeyRange {
            begin,
            end: with_byte(&all, 0xff),
        }
    }

    /// The keys of a section in the order of hashes.
    pub fn hashed_keys(&self, data: Id, section: Section) -> HashedKeys {
        HashedKeys {
            prefix: self.section_prefix(data, section),
        }
    }

    /// Prefix of a list's elements.
    pub fn elements_prefix(&self, data: Id) -> Vec<u8> {
        self.section_prefix(data, Section::Elements)
    }

    /// Key of a list element.
    pub fn element_key(&self, data: Id, position: &Position) -> Vec<u8> {
        let mut key = self.elements_prefix(data);
        position.pack_into(&mut key);
        key
    }

    /// Reads a list element's position off a key whose elements prefix has `prefix_length`
    /// bytes.
    ///
    /// # Errors
    /// If the key is not the key of a list element.
    pub fn read_position(&self, prefix_length: usize, key: &[u8]) -> Result<Position, DecodeError> {
        match key.get(prefix_length..) {
            Some(mut rest) => Position::take_all(&mut rest),
            None => corrupt("list element key"),
        }
    }
}
