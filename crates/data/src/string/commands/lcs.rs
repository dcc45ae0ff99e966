//! LCS.

use bytes::Bytes;

use crate::command::arguments::{argument, integer, is_word, rest};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::string::StringValue;
use crate::unit::context::ReadContext;
use quoin_base::limits::LCS_TABLE_BYTES_MAX;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// The options of LCS.
#[derive(Default)]
struct Options {
    returns_length: bool,
    returns_indexes: bool,
    with_match_length: bool,
    match_length_min: i64,
}

/// `LCS key1 key2 [LEN] [IDX] [MINMATCHLEN length] [WITHMATCHLEN]` → the longest common
/// subsequence, its length, or its places in both strings.
pub(super) async fn lcs(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let first = string(context, argument(arguments, 1)?).await?;
    let second = string(context, argument(arguments, 2)?).await?;
    let options = Options::parse(rest(arguments, 3))?;
    check_table(first.1, second.1)?;
    let first = value(context, first.0).await?;
    let second = value(context, second.0).await?;
    let table = Table::new(&first, &second)?;
    if options.returns_length {
        return Ok(Reply::count(table.length()));
    }
    let (common, matches) = table.walk_back();
    if !options.returns_indexes {
        return Ok(Reply::bulk(common));
    }
    let matches = matches.iter();
    let kept = matches.filter(|one| one.length_number() >= options.match_length_min);
    let kept = kept.map(|one| one.reply(options.with_match_length));
    Ok(Reply::Map(vec![
        (Reply::bulk("matches"), Reply::Array(kept.collect())),
        (Reply::bulk("len"), Reply::count(table.length())),
    ]))
}

impl Options {
    fn parse(mut words: &[Bytes]) -> Result<Self, CommandError> {
        let mut options = Self::default();
        while let [word, after @ ..] = words {
            words = after;
            if is_word(word, "idx") {
                options.returns_indexes = true;
            } else if is_word(word, "len") {
                options.returns_length = true;
            } else if is_word(word, "withmatchlen") {
                options.with_match_length = true;
            } else if let [length, after @ ..] = after
                && is_word(word, "minmatchlen")
            {
                options.match_length_min = integer(length)?;
                words = after;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        if options.returns_length && options.returns_indexes {
            return Err(CommandError::text(
                "ERR If you want both the length and indexes, please just use IDX.",
            ));
        }
        Ok(options)
    }
}

/// A key that must be a string or missing, and its length.
async fn string(
    context: &ReadContext<'_>,
    name: &Bytes,
) -> Result<(Option<OpenKey>, u64), CommandError> {
    let Some(key) = context.find_any(name).await? else {
        return Ok((None, 0));
    };
    if key.meta.value_type != ValueType::String {
        return Err(CommandError::text(
            "ERR The specified keys must contain string values",
        ));
    }
    let length = StringValue::open(context, &key).length().await?;
    Ok((Some(key), length))
}

async fn value(context: &ReadContext<'_>, key: Option<OpenKey>) -> Result<Bytes, CommandError> {
    match key {
        Some(key) => Ok(StringValue::open(context, &key).get().await?),
        None => Ok(Bytes::new()),
    }
}

fn check_table(first: u64, second: u64) -> Result<(), CommandError> {
    let cells = u128::from(first + 1) * u128::from(second + 1);
    if cells * size_of::<u32>() as u128 > LCS_TABLE_BYTES_MAX as u128 {
        return Err(CommandError::text(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        ));
    }
    Ok(())
}

/// The length of the longest common subsequence of each prefix of `first` with each prefix of `second`.
struct Table<'a> {
    first: &'a [u8],
    second: &'a [u8],
    /// A row for each prefix of `first`, the shortest (empty) first.
    cells: Vec<u32>,
}

impl<'a> Table<'a> {
    fn new(first: &'a [u8], second: &'a [u8]) -> Result<Self, CommandError> {
        let width = second.len() + 1;
        let size = (first.len() + 1) * width;
        let mut cells = Vec::new();
        cells.try_reserve_exact(size).map_err(|_| {
            CommandError::text(
                "ERR Insufficient memory, failed allocating transient memory for LCS",
            )
        })?;
        cells.resize(size, 0);
        let mut rows = cells.chunks_exact_mut(width);
        let mut above: &[u32] = rows.next().unwrap_or_default();
        for (byte, row) in first.iter().zip(rows) {
            let mut left = 0;
            let cells = row.iter_mut().skip(1).zip(above.windows(2));
            for ((cell, above), other) in cells.zip(second) {
                *cell = match *above {
                    [diagonal, _] if byte == other => diagonal + 1,
                    [_, above] => left.max(above),
                    _ => left,
                };
                left = *cell;
            }
            above = row;
        }
        Ok(Self {
            first,
            second,
            cells,
        })
    }

    fn cell(&self, first: usize, second: usize) -> u32 {
        let at = first * (self.second.len() + 1) + second;
        self.cells.get(at).copied().unwrap_or(0)
    }

    fn length(&self) -> usize {
        let length = self.cells.last().copied().unwrap_or(0);
        usize::try_from(length).unwrap_or(usize::MAX)
    }

    /// The common subsequence, and its contiguous parts in reverse. If several subsequences have
    /// that length, it is the one that Redis returns.
    fn walk_back(&self) -> (Vec<u8>, Vec<Match>) {
        let mut common = Vec::with_capacity(self.length());
        let mut matches: Vec<Match> = Vec::new();
        let (mut i, mut j) = (self.first.len(), self.second.len());
        while let (Some(before_i), Some(before_j)) = (i.checked_sub(1), j.checked_sub(1)) {
            let byte = self.first.get(before_i);
            if byte == self.second.get(before_j) {
                common.extend(byte);
                match matches.last_mut() {
                    Some(last) if (last.first, last.second) == (i, j) => {
                        last.first = before_i;
                        last.second = before_j;
                        last.length += 1;
                    }
                    _ => matches.push(Match {
                        first: before_i,
                        second: before_j,
                        length: 1,
                    }),
                }
                (i, j) = (before_i, before_j);
            } else if self.cell(before_i, j) > self.cell(i, before_j) {
                i = before_i;
            } else {
                j = before_j;
            }
        }
        common.reverse();
        (common, matches)
    }
}

/// A common part: its place in both strings, and its length.
struct Match {
    first: usize,
    second: usize,
    length: usize,
}

impl Match {
    fn length_number(&self) -> i64 {
        i64::try_from(self.length).unwrap_or(i64::MAX)
    }

    fn reply(&self, with_length: bool) -> Reply {
        let range = |begin: usize| {
            let last = begin + self.length - 1;
            Reply::Array(vec![Reply::count(begin), Reply::count(last)])
        };
        let mut items = vec![range(self.first), range(self.second)];
        if with_length {
            items.push(Reply::count(self.length));
        }
        Reply::Array(items)
    }
}
