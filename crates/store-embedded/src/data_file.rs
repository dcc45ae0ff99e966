//! Checks LMDB's data file without mapping it.
//!
//! LMDB trusts its file. If pages are missing or damaged, LMDB may read beyond the end of the file
//! or follow invalid page numbers, and crash the process. So the file is checked before it is
//! mapped: that it is LMDB's, that it is complete and, on request, every page and row.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

pub(super) const DATA_FILE: &str = "data.mdb";

/// A page begins with its number (8 bytes), a number for fixed sizes (2), flags (2), and the
/// beginning and end of its free space (2 each). Overflow pages have their count (4) instead of the
/// last two.
const PAGE_HEADER_BYTES: usize = 16;
const FLAGS_OFFSET: usize = 10;
const LOWER_OFFSET: usize = 12;
const UPPER_OFFSET: usize = 14;
const OVERFLOW_COUNT_OFFSET: usize = 12;
const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const OVERFLOW: u16 = 0x04;
const META: u16 = 0x08;
/// A node begins with the size of its value or the lower part of a page number (4 bytes), flags or
/// the upper part of the page number (2), and the key's length (2).
const NODE_HEADER_BYTES: usize = 8;
/// The node's value is in overflow pages. The node has the number of the first of them.
const BIG_VALUE: u16 = 0x01;

/// A meta page: magic (4), version (4), address and size of the map (8 each), two databases of 48
/// bytes (free pages, rows), the last page's number (8), and the transaction's number (8).
const MAGIC: u32 = 0xBEEF_C0DE;
const META_FREE_OFFSET: usize = PAGE_HEADER_BYTES + 24;
const META_MAIN_OFFSET: usize = META_FREE_OFFSET + DATABASE_BYTES;
const META_LAST_PAGE_OFFSET: usize = META_MAIN_OFFSET + DATABASE_BYTES;
const META_TRANSACTION_OFFSET: usize = META_LAST_PAGE_OFFSET + 8;
const META_BYTES: usize = META_TRANSACTION_OFFSET + 8;
/// A database: size of a page (4), flags (2), depth (2), three numbers of pages (8 each), its rows
/// (8) and its root (8).
const DATABASE_BYTES: usize = 48;
const ENTRIES_OFFSET: usize = 32;
const ROOT_OFFSET: usize = 40;
/// The root of an empty database.
const NO_PAGE: u64 = u64::MAX;

/// LMDB's maximum depth of a tree.
const DEPTH_MAX: usize = 32;
const PAGE_BYTES_MIN: u64 = 512;
const PAGE_BYTES_MAX: u64 = 64 * 1024;

/// What is wrong with a data file.
#[derive(Debug, thiserror::Error)]
pub enum DataFileError {
    /// It cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It has no bytes.
    #[error("it is empty")]
    Empty,
    /// It does not begin like a file of LMDB.
    #[error("its first pages are not those of a data file")]
    NotLmdb,
    /// Pages that are in use are missing.
    #[error("it has {bytes} bytes, but needs {needed}: its end is missing")]
    Short {
        /// Its length.
        bytes: u64,
        /// The length that it must have.
        needed: u64,
    },
    /// A page is damaged.
    #[error("its page {page} is damaged: {what}")]
    Page {
        /// The page's number.
        page: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The number of rows is wrong.
    #[error("it has {found} rows, but should have {expected}")]
    Rows {
        /// Rows that were found.
        found: u64,
        /// Rows that the meta page counts.
        expected: u64,
    },
}

/// A data file, open for reading.
pub(super) struct DataFile {
    file: File,
    bytes: u64,
    meta: Meta,
}

/// The newest meta page.
#[derive(Debug, Clone, Copy)]
struct Meta {
    page_bytes: u64,
    free: Tree,
    main: Tree,
    last_page: u64,
    transaction: u64,
}

#[derive(Debug, Clone, Copy)]
struct Tree {
    entries: u64,
    root: u64,
    /// Whether its keys are sorted as bytes. Keys of the free list are numbers.
    is_of_bytes: bool,
}

/// A page that is still to be checked, and the bounds of its keys.
struct Pending {
    page: u64,
    from: Option<Box<[u8]>>,
    until: Option<Box<[u8]>>,
}

enum Node<'p> {
    Branch { key: &'p [u8], page: u64 },
    Leaf { key: &'p [u8], value: Value<'p> },
}

enum Value<'p> {
    Here(&'p [u8]),
    Overflow { page: u64, bytes: usize },
}

impl DataFile {
    /// Opens a data file and reads its meta pages.
    ///
    /// # Errors
    /// If it is not a data file.
    pub(super) fn open(path: &Path) -> Result<Self, DataFileError> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        if bytes == 0 {
            return Err(DataFileError::Empty);
        }
        let first = read_meta(&file, 0)?;
        let second = read_meta(&file, first.page_bytes)?;
        let meta = if first.transaction < second.transaction {
            second
        } else {
            first
        };
        Ok(Self { file, bytes, meta })
    }

    /// Refuses a file with missing pages. Free pages at its end may be missing.
    ///
    /// # Errors
    /// [`DataFileError::Short`], or damage in the free list.
    pub(super) fn check_length(&self) -> Result<(), DataFileError> {
        let Meta {
            page_bytes,
            last_page,
            ..
        } = self.meta;
        let needed = last_page.saturating_add(1).saturating_mul(page_bytes);
        if self.bytes >= needed {
            return Ok(());
        }
        let first_missing = self.bytes / page_bytes;
        let mut missing = last_page + 1 - first_missing;
        self.walk(self.meta.free, |_, value| {
            for page in free_pages(value) {
                if page >= first_missing && page <= last_page {
                    missing = missing.saturating_sub(1);
                }
            }
        })?;
        if missing > 0 {
            return Err(DataFileError::Short {
                bytes: self.bytes,
                needed,
            });
        }
        Ok(())
    }

    /// The key of the last row.
    ///
    /// # Errors
    /// If a page on the way to it is damaged.
    pub(super) fn last_key(&self) -> Result<Option<Vec<u8>>, DataFileError> {
        let mut next = self.meta.main.root;
        if next == NO_PAGE {
            return Ok(None);
        }
        for _ in 0..DEPTH_MAX {
            let page = self.read_page(next)?;
            match nodes(next, &page)?.last() {
                Some(Node::Branch { page, .. }) => next = *page,
                Some(Node::Leaf { key, .. }) => return Ok(Some(key.to_vec())),
                None => break,
            }
        }
        Err(damaged(next, "no row is found from it"))
    }

    /// Checks every page in use, and calls `row` with each stored row. Returns the number of rows.
    /// LMDB can safely read a file that passes.
    ///
    /// # Errors
    /// The first damaged page.
    pub(super) fn check_pages(&self, row: impl FnMut(&[u8], &[u8])) -> Result<u64, DataFileError> {
        self.check_length()?;
        self.walk(self.meta.free, |_, _| {})?;
        self.walk(self.meta.main, row)
    }

    /// Calls `row` with every row of a tree, in order. Needs memory for the tree's depth and one
    /// value.
    fn walk(&self, tree: Tree, mut row: impl FnMut(&[u8], &[u8])) -> Result<u64, DataFileError> {
        let mut pending = Vec::new();
        if tree.root != NO_PAGE {
            pending.push(Pending {
                page: tree.root,
                from: None,
                until: None,
            });
        }
        let (mut seen, mut found) = (0, 0);
        while let Some(next) = pending.pop() {
            seen += 1;
            if seen > self.meta.last_page {
                return Err(damaged(next.page, "pages form a cycle"));
            }
            let page = self.read_page(next.page)?;
            let nodes = nodes(next.page, &page)?;
            if tree.is_of_bytes {
                check_order(&next, &nodes)?;
            }
            if nodes.is_empty() {
                return Err(damaged(next.page, "it has no rows"));
            }
            // In reverse, because the last one is popped first.
            let mut until = next.until;
            let mut children = Vec::new();
            for (at, node) in nodes.iter().enumerate().rev() {
                if let Node::Branch { key, page } = node {
                    let from = if at == 0 {
                        next.from.clone()
                    } else {
                        Some((*key).into())
                    };
                    let page = *page;
                    children.push(Pending {
                        page,
                        from: from.clone(),
                        until: until.clone(),
                    });
                    until = from;
                }
            }
            pending.extend(children);
            for node in &nodes {
                match node {
                    Node::Branch { .. } => {}
                    Node::Leaf { key, value } => {
                        found += 1;
                        match value {
                            Value::Here(value) => row(key, value),
                            Value::Overflow { page, bytes } => {
                                row(key, &self.read_overflow(*page, *bytes)?);
                            }
                        }
                    }
                }
            }
        }
        if found != tree.entries {
            return Err(DataFileError::Rows {
                found,
                expected: tree.entries,
            });
        }
        Ok(found)
    }

    fn read_page(&self, number: u64) -> Result<Vec<u8>, DataFileError> {
        let mut page = vec![0; usize::try_from(self.meta.page_bytes).unwrap_or(0)];
        self.read(number, &mut page)?;
        if long_at(&page, 0) != Some(number) {
            return Err(damaged(number, "it has the number of another page"));
        }
        Ok(page)
    }

    fn read_overflow(&self, number: u64, bytes: usize) -> Result<Vec<u8>, DataFileError> {
        let first = self.read_page(number)?;
        let pages = u64::from(word_at(&first, OVERFLOW_COUNT_OFFSET).unwrap_or(0));
        let needed = (PAGE_HEADER_BYTES + bytes) as u64;
        if short_at(&first, FLAGS_OFFSET) & OVERFLOW == 0 {
            return Err(damaged(number, "it should have a long value"));
        }
        if pages.saturating_mul(self.meta.page_bytes) < needed {
            return Err(damaged(number, "its value is longer than its pages"));
        }
        // The length may be damaged, so memory is allocated only if the file is long enough.
        self.check_inside(number, needed)?;
        let mut value = vec![0; PAGE_HEADER_BYTES + bytes];
        self.read(number, &mut value)?;
        Ok(value.split_off(PAGE_HEADER_BYTES))
    }

    fn read(&self, number: u64, bytes: &mut [u8]) -> Result<(), DataFileError> {
        self.check_inside(number, bytes.len() as u64)?;
        let at = number * self.meta.page_bytes;
        Ok(self.file.read_exact_at(bytes, at)?)
    }

    fn check_inside(&self, number: u64, bytes: u64) -> Result<(), DataFileError> {
        let end = number
            .checked_mul(self.meta.page_bytes)
            .and_then(|begin| begin.checked_add(bytes));
        if number < 2 || number > self.meta.last_page {
            return Err(damaged(number, "the page that leads to it is damaged"));
        }
        match end {
            Some(end) if end <= self.bytes => Ok(()),
            end => Err(DataFileError::Short {
                bytes: self.bytes,
                needed: end.unwrap_or(u64::MAX),
            }),
        }
    }
}

fn damaged(page: u64, what: &'static str) -> DataFileError {
    DataFileError::Page { page, what }
}

fn read_meta(file: &File, at: u64) -> Result<Meta, DataFileError> {
    let mut page = [0; META_BYTES];
    match file.read_exact_at(&mut page, at) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(DataFileError::NotLmdb);
        }
        read => read?,
    }
    let magic = word_at(&page, PAGE_HEADER_BYTES);
    let page_bytes = u64::from(word_at(&page, META_FREE_OFFSET).unwrap_or(0));
    let is_meta = short_at(&page, FLAGS_OFFSET) & META != 0 && magic == Some(MAGIC);
    let is_size = (PAGE_BYTES_MIN..=PAGE_BYTES_MAX).contains(&page_bytes);
    if !is_meta || !is_size || !page_bytes.is_power_of_two() {
        return Err(DataFileError::NotLmdb);
    }
    let field = |at| long_at(&page, at).unwrap_or(0);
    let tree = |at, is_of_bytes| Tree {
        entries: field(at + ENTRIES_OFFSET),
        root: field(at + ROOT_OFFSET),
        is_of_bytes,
    };
    Ok(Meta {
        page_bytes,
        free: tree(META_FREE_OFFSET, false),
        main: tree(META_MAIN_OFFSET, true),
        last_page: field(META_LAST_PAGE_OFFSET),
        transaction: field(META_TRANSACTION_OFFSET),
    })
}

/// Numbers are in the machine's byte order.
fn bytes_at<const BYTES: usize>(bytes: &[u8], at: usize) -> Option<[u8; BYTES]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn long_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes_at(bytes, at).map(u64::from_ne_bytes)
}

fn word_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes_at(bytes, at).map(u32::from_ne_bytes)
}

fn short_at(bytes: &[u8], at: usize) -> u16 {
    bytes_at(bytes, at).map_or(0, u16::from_ne_bytes)
}

/// The page numbers in a row of the free list, after their count.
fn free_pages(value: &[u8]) -> impl Iterator<Item = u64> {
    let mut numbers = value
        .chunks_exact(8)
        .map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap_or_default()));
    let count = numbers.next().unwrap_or(0);
    numbers.take(usize::try_from(count).unwrap_or(usize::MAX))
}

fn nodes(number: u64, page: &[u8]) -> Result<Vec<Node<'_>>, DataFileError> {
    let flags = short_at(page, FLAGS_OFFSET);
    let lower = usize::from(short_at(page, LOWER_OFFSET));
    let upper = usize::from(short_at(page, UPPER_OFFSET));
    let is_branch = match flags & (BRANCH | LEAF | OVERFLOW | META) {
        BRANCH => true,
        LEAF => false,
        _ => return Err(damaged(number, "it is neither a branch nor a leaf")),
    };
    let places = page
        .get(PAGE_HEADER_BYTES..lower)
        .filter(|_| lower <= upper && upper <= page.len() && lower.is_multiple_of(2))
        .ok_or_else(|| damaged(number, "its free space is outside of it"))?;
    let places = places.chunks_exact(2).map(|place| {
        let place = usize::from(short_at(place, 0));
        page.get(place..).filter(|_| place >= upper)
    });
    places
        .map(|node| node.and_then(|node| parse_node(node, is_branch)))
        .collect::<Option<_>>()
        .ok_or_else(|| damaged(number, "a row is outside of it"))
}

fn parse_node(node: &[u8], is_branch: bool) -> Option<Node<'_>> {
    let (header, rest) = node.split_at_checked(NODE_HEADER_BYTES)?;
    let (low, flags) = (word_at(header, 0)?, short_at(header, 4));
    let (key, rest) = rest.split_at_checked(usize::from(short_at(header, 6)))?;
    if is_branch {
        let page = u64::from(low) | u64::from(flags) << 32;
        return Some(Node::Branch { key, page });
    }
    let bytes = usize::try_from(low).ok()?;
    let value = match flags {
        0 => Value::Here(rest.get(..bytes)?),
        BIG_VALUE => Value::Overflow {
            page: long_at(rest, 0)?,
            bytes,
        },
        _ => return None,
    };
    Some(Node::Leaf { key, value })
}

/// Checks that keys ascend and are within the bounds. The first node of a branch has no key.
fn check_order(pending: &Pending, nodes: &[Node<'_>]) -> Result<(), DataFileError> {
    let wrong = || damaged(pending.page, "its keys are out of order");
    let mut last: Option<&[u8]> = None;
    for (at, node) in nodes.iter().enumerate() {
        let key = match node {
            Node::Branch { .. } if at == 0 => continue,
            Node::Branch { key, .. } | Node::Leaf { key, .. } => *key,
        };
        let is_inside = pending.from.as_deref().is_none_or(|from| from <= key)
            && pending.until.as_deref().is_none_or(|until| key < until);
        if !is_inside || last.is_some_and(|last| last >= key) {
            return Err(wrong());
        }
        last = Some(key);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
