//! Nodes of the tree, in four sizes: for up to 4, 16, 48 or 256 children.

use triomphe::Arc;

use super::super::row::Row;

/// Bytes of a prefix that a node holds. Longer ones take several nodes.
pub(super) const PREFIX_BYTES: usize = 15;

/// Nothing, a row, or a node with more of both.
#[derive(Debug, Clone, Default)]
pub(super) enum Child {
    #[default]
    Empty,
    Row(Row),
    Of4(Arc<Node<Sorted<4>>>),
    Of16(Arc<Node<Sorted<16>>>),
    Of48(Arc<Node<Indexed>>),
    Of256(Arc<Node<Direct>>),
}

/// A node: the rows whose keys begin with the same bytes.
#[derive(Debug, Clone)]
pub(super) struct Node<C> {
    /// What all keys have in common after the byte that led here.
    pub(super) prefix: Prefix,
    /// The row whose key ends with the prefix.
    pub(super) here: Option<Row>,
    pub(super) children: C,
}

/// A few bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Prefix {
    length: u8,
    bytes: [u8; PREFIX_BYTES],
}

impl Prefix {
    /// Keeps at most [`PREFIX_BYTES`] bytes.
    pub(super) fn new(of: &[u8]) -> Self {
        let mut bytes = [0; PREFIX_BYTES];
        let mut length = 0;
        for (to, from) in bytes.iter_mut().zip(of) {
            *to = *from;
            length += 1;
        }
        Self { length, bytes }
    }

    /// What follows the prefix in a key that begins with it.
    pub(super) fn strip<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        let (begin, after) = key.split_at_checked(usize::from(self.length))?;
        // Most prefixes are so short that a call of `memcmp` would cost more.
        let is_same = begin.iter().zip(&self.bytes).all(|(one, own)| one == own);
        is_same.then_some(after)
    }
}

impl std::ops::Deref for Prefix {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // `length` never exceeds the array.
        self.bytes.get(..usize::from(self.length)).unwrap_or(&[])
    }
}

/// The children of a node, by their bytes.
pub(super) trait Children: Clone + Default {
    fn len(&self) -> usize;
    /// The index of a byte's child in [`slots`](Self::slots).
    fn place(&self, byte: u8) -> Option<usize>;
    fn slots(&self) -> &[Child];
    fn slots_mut(&mut self) -> &mut [Child];
    /// The first byte with a child at or after this one.
    fn next_byte(&self, byte: u8) -> Option<u8>;
    /// The last byte with a child at or before this one.
    fn previous_byte(&self, byte: u8) -> Option<u8>;
    /// Adds a child at a byte that has none. Returns it if there is no room.
    fn add(&mut self, byte: u8, child: Child) -> Result<(), Child>;
    fn take(&mut self, byte: u8) -> Option<Child>;

    fn get(&self, byte: u8) -> Option<&Child> {
        self.slots().get(self.place(byte)?)
    }

    fn get_mut(&mut self, byte: u8) -> Option<&mut Child> {
        let place = self.place(byte)?;
        self.slots_mut().get_mut(place)
    }

    /// The first child at or after a byte.
    fn at_or_after(&self, byte: u8) -> Option<(u8, &Child)> {
        let byte = self.next_byte(byte)?;
        Some((byte, self.get(byte)?))
    }

    /// The last child at or before a byte.
    fn at_or_before(&self, byte: u8) -> Option<(u8, &Child)> {
        let byte = self.previous_byte(byte)?;
        Some((byte, self.get(byte)?))
    }

    /// Moves the children to another kind of node, which must have room for them.
    fn move_to<C: Children>(&mut self) -> C {
        let mut moved = C::default();
        let mut from = Some(0);
        while let Some(byte) = from
            && let Some((byte, _)) = self.at_or_after(byte)
        {
            if let Some(child) = self.take(byte) {
                // The caller chose a kind with room.
                let added = moved.add(byte, child);
                debug_assert!(added.is_ok(), "a larger node has room");
            }
            from = byte.checked_add(1);
        }
        moved
    }
}

/// Up to `N` children in the order of their bytes.
#[derive(Debug, Clone)]
pub(super) struct Sorted<const N: usize> {
    count: u8,
    bytes: [u8; N],
    children: [Child; N],
}

impl<const N: usize> Default for Sorted<N> {
    fn default() -> Self {
        Self {
            count: 0,
            bytes: [0; N],
            children: std::array::from_fn(|_| Child::Empty),
        }
    }
}

impl<const N: usize> Sorted<N> {
    fn bytes(&self) -> &[u8] {
        // `count` never exceeds the array.
        self.bytes.get(..usize::from(self.count)).unwrap_or(&[])
    }
}

impl<const N: usize> Children for Sorted<N> {
    fn len(&self) -> usize {
        usize::from(self.count)
    }

    fn place(&self, byte: u8) -> Option<usize> {
        self.bytes().iter().position(|one| *one == byte)
    }

    fn slots(&self) -> &[Child] {
        &self.children
    }

    fn slots_mut(&mut self) -> &mut [Child] {
        &mut self.children
    }

    fn next_byte(&self, byte: u8) -> Option<u8> {
        self.bytes().iter().copied().find(|one| *one >= byte)
    }

    fn previous_byte(&self, byte: u8) -> Option<u8> {
        self.bytes().iter().copied().rfind(|one| *one <= byte)
    }

    fn add(&mut self, byte: u8, child: Child) -> Result<(), Child> {
        let count = self.len();
        let at = self.bytes().partition_point(|one| *one < byte);
        let (Some(bytes), Some(children)) = (
            self.bytes.get_mut(at..=count),
            self.children.get_mut(at..=count),
        ) else {
            return Err(child);
        };
        bytes.rotate_right(1);
        children.rotate_right(1);
        if let (Some(first_byte), Some(first)) = (bytes.first_mut(), children.first_mut()) {
            *first_byte = byte;
            *first = child;
        }
        self.count += 1;
        Ok(())
    }

    fn take(&mut self, byte: u8) -> Option<Child> {
        let at = self.place(byte)?;
        let child = std::mem::take(self.children.get_mut(at)?);
        let count = self.len();
        self.bytes.get_mut(at..count)?.rotate_left(1);
        self.children.get_mut(at..count)?.rotate_left(1);
        self.count -= 1;
        Some(child)
    }
}

/// The bytes that have a child.
#[derive(Debug, Clone, Copy, Default)]
struct Present([u64; 4]);

impl Present {
    fn set(&mut self, byte: u8) {
        if let Some(word) = self.0.get_mut(usize::from(byte / 64)) {
            *word |= 1 << (byte % 64);
        }
    }

    fn unset(&mut self, byte: u8) {
        if let Some(word) = self.0.get_mut(usize::from(byte / 64)) {
            *word &= !(1 << (byte % 64));
        }
    }

    fn at_or_after(&self, byte: u8) -> Option<u8> {
        let mut mask = u64::MAX << (byte % 64);
        for (number, word) in (0_u8..).zip(&self.0).skip(usize::from(byte / 64)) {
            if word & mask != 0 {
                return Some(number * 64 + (word & mask).trailing_zeros() as u8);
            }
            mask = u64::MAX;
        }
        None
    }

    fn at_or_before(&self, byte: u8) -> Option<u8> {
        let mut mask = u64::MAX >> (63 - byte % 64);
        for (number, word) in (0_u8..4)
            .zip(&self.0)
            .rev()
            .skip(usize::from(3 - byte / 64))
        {
            if word & mask != 0 {
                return Some(number * 64 + 63 - (word & mask).leading_zeros() as u8);
            }
            mask = u64::MAX;
        }
        None
    }
}

/// Children that an [`Indexed`] node has room for.
pub(super) const INDEXED_MAX: usize = 48;
const NOWHERE: u8 = u8::MAX;

/// Up to 48 children in any order, and for each byte the place of its child.
#[derive(Debug, Clone)]
pub(super) struct Indexed {
    count: u8,
    present: Present,
    places: [u8; 256],
    children: [Child; INDEXED_MAX],
}

impl Default for Indexed {
    fn default() -> Self {
        Self {
            count: 0,
            present: Present::default(),
            places: [NOWHERE; 256],
            children: std::array::from_fn(|_| Child::Empty),
        }
    }
}

impl Children for Indexed {
    fn len(&self) -> usize {
        usize::from(self.count)
    }

    fn place(&self, byte: u8) -> Option<usize> {
        let place = *self.places.get(usize::from(byte))?;
        (place != NOWHERE).then_some(usize::from(place))
    }

    fn slots(&self) -> &[Child] {
        &self.children
    }

    fn slots_mut(&mut self) -> &mut [Child] {
        &mut self.children
    }

    fn next_byte(&self, byte: u8) -> Option<u8> {
        self.present.at_or_after(byte)
    }

    fn previous_byte(&self, byte: u8) -> Option<u8> {
        self.present.at_or_before(byte)
    }

    fn add(&mut self, byte: u8, child: Child) -> Result<(), Child> {
        let mut free = (0_u8..).zip(&mut self.children);
        let free = free.find(|(_, child)| matches!(child, Child::Empty));
        let (Some((place, room)), Some(to)) = (free, self.places.get_mut(usize::from(byte))) else {
            return Err(child);
        };
        *room = child;
        *to = place;
        self.present.set(byte);
        self.count += 1;
        Ok(())
    }

    fn take(&mut self, byte: u8) -> Option<Child> {
        let child = std::mem::take(self.get_mut(byte)?);
        *self.places.get_mut(usize::from(byte))? = NOWHERE;
        self.present.unset(byte);
        self.count -= 1;
        Some(child)
    }
}

/// A slot for the child of each byte.
#[derive(Debug, Clone)]
pub(super) struct Direct {
    count: u16,
    present: Present,
    children: [Child; 256],
}

impl Default for Direct {
    fn default() -> Self {
        Self {
            count: 0,
            present: Present::default(),
            children: std::array::from_fn(|_| Child::Empty),
        }
    }
}

impl Children for Direct {
    fn len(&self) -> usize {
        usize::from(self.count)
    }

    fn place(&self, byte: u8) -> Option<usize> {
        // Whoever asks reads the child next, so this takes no further cache line.
        let child = self.children.get(usize::from(byte))?;
        (!matches!(child, Child::Empty)).then_some(usize::from(byte))
    }

    fn slots(&self) -> &[Child] {
        &self.children
    }

    fn slots_mut(&mut self) -> &mut [Child] {
        &mut self.children
    }

    fn next_byte(&self, byte: u8) -> Option<u8> {
        self.present.at_or_after(byte)
    }

    fn previous_byte(&self, byte: u8) -> Option<u8> {
        self.present.at_or_before(byte)
    }

    fn add(&mut self, byte: u8, child: Child) -> Result<(), Child> {
        match self.children.get_mut(usize::from(byte)) {
            Some(room) => {
                *room = child;
                self.present.set(byte);
                self.count += 1;
                Ok(())
            }
            None => Err(child),
        }
    }

    fn take(&mut self, byte: u8) -> Option<Child> {
        let child = std::mem::take(self.get_mut(byte)?);
        self.present.unset(byte);
        self.count -= 1;
        Some(child)
    }
}
