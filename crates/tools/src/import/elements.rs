//! The elements of a payload, as words of the command that adds them.

use bytes::Bytes;

use super::kinds::Kind;
use quoin_base::limits::DUMP_CHUNK_ELEMENTS_MAX;
use quoin_rdb::{
    Chunks, DumpError, HashFields, ListElements, OwnType, Payload, SetMembers, SortedSetMembers,
    StreamReader, read_string, reads_string,
};

/// Bytes of a string in one word.
const STRING_PART_BYTES: usize = 512 * 1024;

/// Hands out elements, a few at a time.
pub(super) enum Elements {
    List(ListElements),
    Set(SetMembers),
    Hash(HashFields),
    SortedSet(SortedSetMembers),
    String(Bytes),
    Own(Chunks),
}

/// The type of a payload's value, and the number of its elements. Reads all of it, so that an
/// invalid value is detected before anything is sent.
pub(super) fn count(payload: &Bytes) -> Result<(Kind, u64), DumpError> {
    let opened = quoin_rdb::open(payload)?;
    let kind = kind_of(&opened).ok_or_else(|| opened.refusal())?;
    if kind.is_dumped() {
        let mut entries = StreamReader::new(opened)?;
        let mut count = 0;
        while entries.next_entry()?.is_some() {
            count += 1;
        }
        entries.finish()?;
        return Ok((kind, count));
    }
    let mut elements = match Elements::of(opened)? {
        Elements::Own(chunks) => return Ok((kind, chunks.count_left()?)),
        elements => elements,
    };
    let mut count = 0;
    while let Some(words) = elements.next()? {
        count += (kind.import.elements_in)(&words) as u64;
    }
    Ok((kind, count))
}

/// The fields of a payload that expire, and when. None of a payload of another type, or after damage.
pub(super) fn field_expiries(payload: &Bytes) -> impl Iterator<Item = (Bytes, i64)> {
    let opened = quoin_rdb::open(payload).ok();
    let hash = opened.filter(|opened| HashFields::reads(opened.rdb_type()));
    let fields = hash.and_then(|hash| HashFields::new(hash).ok());
    let fields = fields.into_iter().flatten().map_while(Result::ok);
    fields.filter_map(|field| Some((field.name, field.expire_at_ms?)))
}

fn kind_of(payload: &Payload) -> Option<Kind> {
    let rdb_type = payload.rdb_type();
    let name: &[u8] = match rdb_type {
        _ if payload.own_type() == Some(OwnType::PriorityQueue) => b"pqueue",
        _ if payload.own_type() == Some(OwnType::TaskQueue) => b"taskqueue",
        _ if reads_string(rdb_type) => b"string",
        _ if ListElements::reads(rdb_type) => b"list",
        _ if SetMembers::reads(rdb_type) => b"set",
        _ if HashFields::reads(rdb_type) => b"hash",
        _ if SortedSetMembers::reads(rdb_type) => b"zset",
        _ if StreamReader::reads(rdb_type) => b"stream",
        _ => return None,
    };
    Kind::named(name)
}

impl Elements {
    /// The elements of a payload, unless it is a stream's.
    pub(super) fn new(payload: &Bytes) -> Result<Self, DumpError> {
        Self::of(quoin_rdb::open(payload)?)
    }

    fn of(payload: Payload) -> Result<Self, DumpError> {
        let rdb_type = payload.rdb_type();
        Ok(match rdb_type {
            _ if payload.own_type().is_some() => Elements::Own(Chunks::new(payload)?),
            _ if reads_string(rdb_type) => Elements::String(read_string(payload)?),
            _ if ListElements::reads(rdb_type) => Elements::List(ListElements::new(payload)?),
            _ if SetMembers::reads(rdb_type) => Elements::Set(SetMembers::new(payload)?),
            _ if HashFields::reads(rdb_type) => Elements::Hash(HashFields::new(payload)?),
            _ if SortedSetMembers::reads(rdb_type) => {
                Elements::SortedSet(SortedSetMembers::new(payload)?)
            }
            _ => return Err(payload.refusal()),
        })
    }

    /// The words of the next elements, about `bytes_max` bytes. Empty at the end.
    pub(super) fn next_words(&mut self, bytes_max: usize) -> Result<Vec<Vec<u8>>, DumpError> {
        if let Elements::String(_) = self {
            // APPEND takes one part.
            return Ok(self.next()?.unwrap_or_default());
        }
        if let Elements::Own(chunks) = self {
            let chunk = chunks.next_chunk(bytes_max, DUMP_CHUNK_ELEMENTS_MAX)?;
            return Ok(chunk.into_iter().map(|chunk| chunk.to_vec()).collect());
        }
        let mut words = Vec::new();
        let mut bytes = 0;
        while bytes < bytes_max
            && let Some(element) = self.next()?
        {
            bytes += element.iter().map(Vec::len).sum::<usize>();
            words.extend(element);
        }
        Ok(words)
    }

    /// The words of the next element.
    fn next(&mut self) -> Result<Option<Vec<Vec<u8>>>, DumpError> {
        Ok(match self {
            Elements::List(elements) => {
                let element = elements.next().transpose()?;
                element.map(|element| vec![element.to_vec()])
            }
            Elements::Set(members) => {
                let member = members.next().transpose()?;
                member.map(|member| vec![member.to_vec()])
            }
            Elements::Hash(fields) => {
                let field = fields.next().transpose()?;
                field.map(|field| vec![field.name.to_vec(), field.value.to_vec()])
            }
            Elements::SortedSet(members) => {
                let member = members.next().transpose()?;
                member.map(|(member, score)| vec![member.to_vec(), score.to_string().into_bytes()])
            }
            Elements::String(rest) => {
                let part = rest.split_to(rest.len().min(STRING_PART_BYTES));
                (!part.is_empty()).then(|| vec![part.to_vec()])
            }
            Elements::Own(chunks) => {
                let element = chunks.next_chunk(usize::MAX, 1)?;
                element.map(|element| vec![element.to_vec()])
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quoin_rdb::testing::{hashes, old_lists, old_sets, sets, strings};

    fn words(payload: &Bytes) -> Vec<Vec<u8>> {
        let mut elements = Elements::new(payload).unwrap();
        let mut all = Vec::new();
        loop {
            let words = elements.next_words(50).unwrap();
            if words.is_empty() {
                return all;
            }
            all.extend(words);
        }
    }

    #[test]
    fn every_type_is_told_and_counted() {
        let words_of: Vec<Vec<u8>> = (0..50).map(|number| format!("w{number}").into()).collect();
        let pairs: Vec<_> = words_of
            .iter()
            .map(|word| (word.clone(), word.clone()))
            .collect();
        let scores: Vec<_> = words_of
            .iter()
            .cloned()
            .zip((0..50).map(f64::from))
            .collect();
        for (name, payloads, expected) in [
            ("list", old_lists(&words_of), 50),
            ("hash", hashes(&pairs), 50),
            ("zset", old_sets(&scores), 50),
            ("set", sets(&words_of), 50),
            ("string", strings(b"some text")[..2].to_vec(), 9),
        ] {
            for (form, payload) in payloads {
                let (kind, counted) = count(&payload.into()).unwrap();
                assert_eq!((kind.name, counted), (name, expected), "{form}");
            }
        }
        let pair: Bytes = hashes(&pairs).remove(0).1.into();
        assert_eq!(words(&pair).len(), 100);
        assert_eq!(words(&pair)[..2], [b"w0".to_vec(), b"w0".to_vec()]);
    }

    #[test]
    fn scores_keep_all_their_digits() {
        let scores = [0.1, -1e300, f64::INFINITY, 5e-324, 1.0 / 3.0];
        for score in scores {
            let text = score.to_string();
            assert_eq!(
                quoin_base::number::parse_double(text.as_bytes()),
                Some(score),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_not_sound_is_noticed() {
        let mut payload = quoin_rdb::testing::sealed(10, &[14, 1, 3, b'a', b'b', b'c']);
        assert_eq!(
            count(&payload.clone().into()).unwrap_err(),
            DumpError::Format
        );
        payload[1] ^= 1;
        let error = count(&payload.into()).unwrap_err();
        assert_eq!(error, DumpError::VersionOrChecksum);
    }
}
