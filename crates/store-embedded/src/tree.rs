//! Rows in memory, in the order of their keys: an adaptive radix tree (Leis, Kemper, Neumann,
//! ICDE 2013).
//!
//! A search follows the key's bytes and compares only the key that it ends at, so it touches a few
//! cache lines among a million rows. Most keys have a hash near their beginning, which keeps the
//! tree flat.
//!
//! A clone shares all nodes with the original. A change copies the nodes on its way that are
//! shared, and changes the others in place.

mod node;
mod warm;

use std::mem::take;
use std::ops::ControlFlow;

use triomphe::Arc;

use self::node::{Child, Children, INDEXED_MAX, Node, PREFIX_BYTES, Prefix, Sorted};
use super::row::Row;

/// A node with fewer children than this becomes a smaller one. The smaller node still has spare
/// room, so that a node's size does not change back and forth.
const OF_4_BELOW: usize = 4;
const OF_16_BELOW: usize = 13;
const OF_48_BELOW: usize = INDEXED_MAX - 8;

/// An ordered map of rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Tree {
    root: Child,
    count: usize,
}

/// The keys from `begin` on and before `end`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span<'k> {
    pub(super) begin: &'k [u8],
    pub(super) end: &'k [u8],
}

/// Does something with a node of any size.
macro_rules! with_node {
    ($child:expr, $node:ident => $result:expr, else $other:expr) => {
        match $child {
            Child::Of4($node) => $result,
            Child::Of16($node) => $result,
            Child::Of48($node) => $result,
            Child::Of256($node) => $result,
            Child::Empty | Child::Row(_) => $other,
        }
    };
}

use with_node;

impl Tree {
    /// Number of rows.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The row with this key.
    pub(super) fn get(&self, key: &[u8]) -> Option<&Row> {
        let mut child = &self.root;
        let mut rest = key;
        loop {
            let next = with_node!(child, node => descend(node, &mut rest), else {
                return match child {
                    Child::Row(row) if row.key() == key => Some(row),
                    _ => None,
                };
            });
            child = match next {
                Ok(child) => child,
                Err(found) => return found,
            };
        }
    }

    /// Sets a row. Returns the row that it replaces.
    pub(super) fn insert(&mut self, row: Row) -> Option<Row> {
        let key = row.clone();
        self.set(key.key(), |_| row)
    }

    /// Sets the row of a key to what `make` returns for the row that it replaces. Returns the
    /// replaced row.
    pub(super) fn set(
        &mut self,
        key: &[u8],
        make: impl FnOnce(Option<&Row>) -> Row,
    ) -> Option<Row> {
        let old = set(&mut self.root, key, make);
        self.count += usize::from(old.is_none());
        old
    }

    /// Removes a row. Returns it.
    pub(super) fn remove(&mut self, key: &[u8]) -> Option<Row> {
        // A search that finds nothing must not copy shared nodes.
        let (removed, keeps) = find_to_remove(&self.root, key)?;
        remove(&mut self.root, key, keeps);
        self.count = self.count.saturating_sub(1);
        Some(removed)
    }

    /// All rows, in order.
    pub(super) fn all(&self) -> Vec<&Row> {
        let mut rows = Vec::with_capacity(self.count);
        let bounds = Bounds {
            low: None,
            high: None,
        };
        let _: ControlFlow<()> = walk(&self.root, 0, bounds, false, &mut |row| {
            rows.push(row);
            ControlFlow::Continue(())
        });
        rows
    }

    /// The rows in a span, in order.
    pub(super) fn rows_in(&self, span: Span<'_>) -> Vec<Row> {
        let mut rows = Vec::new();
        let _: ControlFlow<()> = self.walk(span, false, &mut |row| {
            rows.push(row.clone());
            ControlFlow::Continue(())
        });
        rows
    }

    /// Visits the rows in a span, in order or in reverse, until `visit` breaks.
    pub(super) fn walk<'t, B>(
        &'t self,
        span: Span<'_>,
        reverse: bool,
        visit: &mut impl FnMut(&'t Row) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        if span.begin >= span.end {
            return ControlFlow::Continue(());
        }
        let bounds = Bounds {
            low: Some(span.begin).filter(|low| !low.is_empty()),
            high: Some(span.end),
        };
        walk(&self.root, 0, bounds, reverse, visit)
    }

    /// The first row in a span or, in reverse, the last.
    #[cfg(test)]
    fn first(&self, span: Span<'_>, reverse: bool) -> Option<&Row> {
        match self.walk(span, reverse, &mut ControlFlow::Break) {
            ControlFlow::Break(row) => Some(row),
            ControlFlow::Continue(()) => None,
        }
    }
}

/// Descends through a node along a key. `Err` is the end of the search.
fn descend<'t, C: Children>(
    node: &'t Node<C>,
    rest: &mut &[u8],
) -> Result<&'t Child, Option<&'t Row>> {
    let after = node.prefix.strip(rest).ok_or(None)?;
    let Some((byte, after)) = after.split_first() else {
        return Err(node.here.as_ref());
    };
    *rest = after;
    node.children.get(*byte).ok_or(None)
}

/// How many first bytes are the same.
pub(super) fn common_bytes(one: &[u8], other: &[u8]) -> usize {
    let pairs = one.iter().zip(other);
    pairs.take_while(|(one, other)| one == other).count()
}

/// The rest of a key after `depth` bytes.
fn below(key: &[u8], depth: usize) -> &[u8] {
    key.get(depth..).unwrap_or_default()
}

/// Where a key belongs at a node.
enum Place {
    /// Below the child in this slot, at this depth.
    Child(usize, usize),
    /// At a byte that has no child.
    Vacant(u8),
    /// At the end of the prefix.
    Here,
    /// Above the node: the key and its prefix differ after this many bytes.
    Beside(usize),
    /// There is no node.
    NoNode,
}

fn place(child: &Child, key: &[u8], depth: usize) -> Place {
    with_node!(child, node => place_at(node, key, depth), else Place::NoNode)
}

fn place_at<C: Children>(node: &Node<C>, key: &[u8], depth: usize) -> Place {
    let rest = below(key, depth);
    let Some(after) = node.prefix.strip(rest) else {
        return Place::Beside(common_bytes(rest, &node.prefix));
    };
    let Some(byte) = after.first().copied() else {
        return Place::Here;
    };
    match node.children.place(byte) {
        Some(slot) => Place::Child(slot, depth + node.prefix.len() + 1),
        None => Place::Vacant(byte),
    }
}

fn child_mut(child: &mut Child, slot: usize) -> Option<&mut Child> {
    with_node!(child, node => Arc::make_mut(node).children.slots_mut().get_mut(slot), else None)
}

fn here_mut(child: &mut Child) -> Option<&mut Option<Row>> {
    with_node!(child, node => Some(&mut Arc::make_mut(node).here), else None)
}

// Not recursive, because keys that are prefixes of each other make a deep tree.
fn set(mut child: &mut Child, key: &[u8], make: impl FnOnce(Option<&Row>) -> Row) -> Option<Row> {
    let mut depth = 0;
    loop {
        match place(child, key, depth) {
            Place::Child(slot, next) => {
                depth = next;
                child = child_mut(child, slot)?;
            }
            Place::Here => {
                let here = here_mut(child)?;
                let row = make(here.as_ref());
                return here.replace(row);
            }
            Place::Vacant(byte) => {
                add(child, byte, Child::Row(make(None)));
                return None;
            }
            Place::Beside(common) => {
                insert_beside(child, make(None), depth, common);
                return None;
            }
            Place::NoNode => {
                let old = match &*child {
                    Child::Row(old) if old.key() == key => Some(old),
                    _ => None,
                };
                let row = make(old);
                return insert_at_row(child, row, depth);
            }
        }
    }
}

/// Adds a child to a node, which becomes a larger one if it is full.
fn add(child: &mut Child, byte: u8, new: Child) {
    let added = with_node!(child, node => Arc::make_mut(node).children.add(byte, new), else Ok(()));
    if let Err(new) = added {
        enlarge(child);
        add(child, byte, new);
    }
}

/// Inserts a row in place of a row or of nothing. Returns the row that it replaces.
fn insert_at_row(child: &mut Child, row: Row, depth: usize) -> Option<Row> {
    let old = match take(child) {
        Child::Row(old) if old.key() != row.key() => old,
        old => {
            *child = Child::Row(row);
            return match old {
                Child::Row(old) => Some(old),
                _ => None,
            };
        }
    };
    let (one, other) = (below(old.key(), depth), below(row.key(), depth));
    let common = common_bytes(one, other);
    let prefix = one.get(..common).unwrap_or_default().to_vec();
    *child = branch(&prefix, |node| {
        put(node, old, depth + common);
        put(node, row, depth + common);
    });
    None
}

/// Inserts a row that has only `common` bytes of a node's prefix.
fn insert_beside(child: &mut Child, row: Row, depth: usize, common: usize) {
    let prefix = prefix_of(child);
    let (begin, end) = prefix.split_at_checked(common).unwrap_or_default();
    let Some((byte, end)) = end.split_first() else {
        // `common` is less than the length.
        return;
    };
    let mut old = take(child);
    set_prefix(&mut old, Prefix::new(end));
    *child = branch(begin, |node| {
        let has_room = node.children.add(*byte, old);
        debug_assert!(has_room.is_ok(), "the node is new");
        put(node, row, depth + common);
    });
}

/// A node for keys that begin with `prefix`. `fill` adds two children or rows. If the prefix is too
/// long for one node, makes a chain of nodes.
fn branch(prefix: &[u8], fill: impl FnOnce(&mut Node<Sorted<4>>)) -> Child {
    let mut at = prefix.len().saturating_sub(PREFIX_BYTES);
    let mut node = Node {
        prefix: Prefix::new(below(prefix, at)),
        here: None,
        children: Sorted::default(),
    };
    fill(&mut node);
    let mut child = Child::Of4(Arc::new(node));
    while let Some((byte, before)) = prefix.get(..at).and_then(<[u8]>::split_last) {
        at = before.len().saturating_sub(PREFIX_BYTES);
        let mut node = Node {
            prefix: Prefix::new(below(before, at)),
            here: None,
            children: Sorted::<4>::default(),
        };
        let has_room = node.children.add(*byte, child);
        debug_assert!(has_room.is_ok(), "the node is new");
        child = Child::Of4(Arc::new(node));
    }
    child
}

/// Puts a row into a new node at `depth` bytes of its key.
fn put(node: &mut Node<Sorted<4>>, row: Row, depth: usize) {
    match row.key().get(depth).copied() {
        None => node.here = Some(row),
        Some(byte) => {
            let has_room = node.children.add(byte, Child::Row(row));
            debug_assert!(has_room.is_ok(), "the node is new");
        }
    }
}

fn prefix_of(child: &Child) -> Prefix {
    with_node!(child, node => node.prefix, else Prefix::default())
}

fn set_prefix(child: &mut Child, prefix: Prefix) {
    with_node!(child, node => Arc::make_mut(node).prefix = prefix, else {});
}

fn resized<From: Children, To: Children>(node: &mut Arc<Node<From>>) -> Arc<Node<To>> {
    let node = Arc::make_mut(node);
    Arc::new(Node {
        prefix: node.prefix,
        here: node.here.take(),
        children: node.children.move_to(),
    })
}

fn enlarge(child: &mut Child) {
    *child = match child {
        Child::Of4(node) => Child::Of16(resized(node)),
        Child::Of16(node) => Child::Of48(resized(node)),
        Child::Of48(node) => Child::Of256(resized(node)),
        // It has room for every byte.
        Child::Empty | Child::Row(_) | Child::Of256(_) => return,
    };
}

/// The row of a key, and the number of nodes above the last node on its path that has another child
/// or row. `None` instead of the number if no node does.
fn find_to_remove(mut at: &Child, key: &[u8]) -> Option<(Row, Option<usize>)> {
    let mut keeps = None;
    let (mut depth, mut above) = (0, 0);
    loop {
        if members(at) > 1 {
            keeps = Some(above);
        }
        match place(at, key, depth) {
            Place::Child(slot, next) => {
                at = with_node!(at, node => node.children.slots().get(slot), else None)?;
                (depth, above) = (next, above + 1);
            }
            Place::Here => {
                let here = with_node!(at, node => node.here.as_ref(), else None)?;
                return Some((here.clone(), keeps));
            }
            Place::NoNode => match at {
                Child::Row(row) if row.key() == key => return Some((row.clone(), keeps)),
                _ => return None,
            },
            Place::Vacant(_) | Place::Beside(_) => return None,
        }
    }
}

/// Removes an existing row, and the nodes that lead only to it.
fn remove(mut child: &mut Child, key: &[u8], keeps: Option<usize>) {
    let Some(keeps) = keeps else {
        *child = Child::Empty;
        return;
    };
    let mut depth = 0;
    for _ in 0..keeps {
        let Place::Child(slot, next) = place(child, key, depth) else {
            return;
        };
        depth = next;
        let Some(below) = child_mut(child, slot) else {
            return;
        };
        child = below;
    }
    match place(child, key, depth) {
        Place::Child(_, next) => {
            if let Some(byte) = key.get(next - 1).copied() {
                with_node!(child, node => drop(Arc::make_mut(node).children.take(byte)), else {});
            }
        }
        _ => {
            if let Some(here) = here_mut(child) {
                *here = None;
            }
        }
    }
    shrink(child);
}

/// Rows and children of a node.
fn members(child: &Child) -> usize {
    with_node!(child, node => node.children.len() + usize::from(node.here.is_some()), else 0)
}

/// Replaces a node with a smaller kind if it has few children left.
fn shrink(child: &mut Child) {
    *child = match child {
        Child::Of4(node) => match only(Arc::make_mut(node)) {
            Some(only) => only,
            None => return,
        },
        Child::Of16(node) if node.children.len() < OF_4_BELOW => Child::Of4(resized(node)),
        Child::Of48(node) if node.children.len() < OF_16_BELOW => Child::Of16(resized(node)),
        Child::Of256(node) if node.children.len() < OF_48_BELOW => Child::Of48(resized(node)),
        _ => return,
    };
}

/// The only row or child of a node, if it can take the node's place.
fn only(node: &mut Node<Sorted<4>>) -> Option<Child> {
    match (node.children.len(), &node.here) {
        (0, Some(_)) => node.here.take().map(Child::Row),
        (0, None) => Some(Child::Empty),
        (1, None) => {
            let (byte, child) = node.children.at_or_after(0)?;
            let below = prefix_of(child);
            if !matches!(child, Child::Row(_)) && node.prefix.len() + below.len() >= PREFIX_BYTES {
                return None;
            }
            let prefix = [&*node.prefix, &[byte], &*below].concat();
            let mut child = node.children.take(byte)?;
            set_prefix(&mut child, Prefix::new(&prefix));
            Some(child)
        }
        _ => None,
    }
}

/// A span's bounds below a node, without the bytes above. `None` if a bound excludes nothing there.
#[derive(Clone, Copy)]
struct Bounds<'k> {
    /// Not empty.
    low: Option<&'k [u8]>,
    /// Not empty.
    high: Option<&'k [u8]>,
}

impl<'k> Bounds<'k> {
    /// The bounds for keys that continue with these bytes. `None` if the span has no such keys.
    fn after(self, bytes: &[u8]) -> Option<Self> {
        let low = match self.low {
            Some(low) => match low.strip_prefix(bytes) {
                Some(rest) => Some(rest).filter(|rest| !rest.is_empty()),
                // The bound is less than all of these keys, or greater.
                None if low < bytes => None,
                None => return None,
            },
            None => None,
        };
        let high = match self.high {
            Some(high) => match high.strip_prefix(bytes) {
                Some([]) => return None,
                Some(rest) => Some(rest),
                None if high > bytes => None,
                None => return None,
            },
            None => None,
        };
        Some(Self { low, high })
    }
}

fn walk<'t, B>(
    child: &'t Child,
    depth: usize,
    bounds: Bounds<'_>,
    reverse: bool,
    visit: &mut impl FnMut(&'t Row) -> ControlFlow<B>,
) -> ControlFlow<B> {
    with_node!(child, node => walk_node(node, depth, bounds, reverse, visit), else {
        let Child::Row(row) = child else {
            return ControlFlow::Continue(());
        };
        let rest = below(row.key(), depth);
        let is_inside = bounds.low.is_none_or(|low| rest >= low)
            && bounds.high.is_none_or(|high| rest < high);
        match is_inside {
            true => visit(row),
            false => ControlFlow::Continue(()),
        }
    })
}

fn walk_node<'t, C: Children, B>(
    node: &'t Node<C>,
    depth: usize,
    bounds: Bounds<'_>,
    reverse: bool,
    visit: &mut impl FnMut(&'t Row) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let Some(bounds) = bounds.after(&node.prefix) else {
        return ControlFlow::Continue(());
    };
    let depth = depth + node.prefix.len() + 1;
    let here = node.here.as_ref().filter(|_| bounds.low.is_none());
    let first = bounds.low.and_then(<[u8]>::first).copied().unwrap_or(0);
    let last = bounds.high.and_then(<[u8]>::first).copied();
    let last = last.unwrap_or(u8::MAX);
    if !reverse && let Some(row) = here {
        visit(row)?;
    }
    let mut next = Some(if reverse { last } else { first });
    while let Some(byte) = next {
        let found = match reverse {
            true => node.children.at_or_before(byte),
            false => node.children.at_or_after(byte),
        };
        let Some((byte, child)) = found.filter(|(byte, _)| (first..=last).contains(byte)) else {
            break;
        };
        if let Some(bounds) = bounds.after(&[byte]) {
            walk(child, depth, bounds, reverse, visit)?;
        }
        next = match reverse {
            true => byte.checked_sub(1),
            false => byte.checked_add(1),
        };
    }
    match here {
        Some(row) if reverse => visit(row),
        _ => ControlFlow::Continue(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use quoin_store::SoonRead;

    use super::super::row::Origin;
    use super::*;

    fn row(key: &[u8], value: &[u8]) -> Row {
        Row::new(&mut Vec::new(), key, value, Origin::DISK)
    }

    type Model = BTreeMap<Vec<u8>, Vec<u8>>;

    fn rows(tree: &Tree, span: Span<'_>, reverse: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut found = Vec::new();
        let _: ControlFlow<()> = tree.walk(span, reverse, &mut |row| {
            found.push((row.key().to_vec(), row.value().to_vec()));
            ControlFlow::Continue(())
        });
        found
    }

    const ALL: Span<'static> = Span {
        begin: b"",
        end: b"\xff\xff\xff",
    };

    fn assert_is(tree: &Tree, model: &Model) {
        assert_eq!(tree.len(), model.len());
        let all: Vec<_> = model.clone().into_iter().collect();
        assert_eq!(rows(tree, ALL, false), all);
    }

    fn keys() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            prop::collection::vec(prop::sample::select(vec![0, 1, 2, 250]), 0..6),
            prop::collection::vec(0_u8..255, 0..3),
            // Longer than one node's prefix.
            (
                prop::collection::vec(prop::sample::select(vec![7, 8]), 0..4),
                0_usize..60
            )
                .prop_map(|(end, length)| [vec![9; length], end].concat()),
        ]
    }

    #[derive(Debug, Clone)]
    enum Step {
        Insert(Vec<u8>, u8),
        Remove(Vec<u8>),
        RemoveSome(u8),
        Share,
        Read(Vec<u8>, Vec<u8>),
    }

    fn steps() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (keys(), any::<u8>()).prop_map(|(key, value)| Step::Insert(key, value)),
            2 => keys().prop_map(Step::Remove),
            2 => any::<u8>().prop_map(Step::RemoveSome),
            1 => Just(Step::Share),
            1 => (keys(), keys()).prop_map(|(begin, end)| Step::Read(begin, end)),
        ]
    }

    proptest! {
        #[test]
        fn it_is_an_ordered_map_and_so_are_its_clones(steps in prop::collection::vec(steps(), 1..400)) {
            let (mut tree, mut model) = (Tree::default(), Model::new());
            let mut shared = Vec::new();
            for step in steps {
                match step {
                    Step::Insert(key, value) => {
                        let old = tree.insert(row(&key, &[value]));
                        let old = old.map(|row| row.value().to_vec());
                        prop_assert_eq!(old, model.insert(key, vec![value]));
                    }
                    Step::Remove(key) => {
                        let removed = tree.remove(&key).map(|row| row.value().to_vec());
                        prop_assert_eq!(removed, model.remove(&key));
                    }
                    Step::RemoveSome(number) => {
                        let keys = model.keys().skip(usize::from(number) % model.len().max(1));
                        for key in keys.take(20).cloned().collect::<Vec<_>>() {
                            prop_assert!(tree.remove(&key).is_some());
                            model.remove(&key);
                        }
                    }
                    Step::Share => shared.push((tree.clone(), model.clone())),
                    Step::Read(begin, end) => {
                        for key in [&begin, &end] {
                            let found = tree.get(key).map(|row| row.value().to_vec());
                            prop_assert_eq!(found, model.get(key).cloned());
                        }
                        let mut expected: Vec<_> = { model.iter() }
                            .filter(|(key, _)| **key >= begin && **key < end)
                            .map(|(key, value)| (key.clone(), value.clone()))
                            .collect();
                        tree.warm(&[
                            SoonRead::Row(begin.clone()),
                            SoonRead::First(begin.clone()),
                            SoonRead::Last(end.clone()),
                        ]);
                        let span = Span { begin: &begin, end: &end };
                        prop_assert_eq!(&rows(&tree, span, false), &expected);
                        let first = tree.first(span, false).map(|row| row.key().to_vec());
                        prop_assert_eq!(first, expected.first().map(|(key, _)| key.clone()));
                        let last = tree.first(span, true).map(|row| row.key().to_vec());
                        prop_assert_eq!(last, expected.last().map(|(key, _)| key.clone()));
                        expected.reverse();
                        prop_assert_eq!(rows(&tree, span, true), expected);
                    }
                }
            }
            assert_is(&tree, &model);
            for (tree, model) in &shared {
                assert_is(tree, model);
            }
        }
    }

    fn backwards(tree: &Tree) -> Vec<u8> {
        let mut found = Vec::new();
        let _: ControlFlow<()> = tree.walk(ALL, true, &mut |row| {
            found.extend(row.value());
            ControlFlow::Continue(())
        });
        found
    }

    #[test]
    fn a_node_grows_to_all_bytes_and_shrinks_to_nothing() {
        let forwards: Vec<u8> = (0..=u8::MAX).collect();
        let reversed: Vec<u8> = forwards.iter().rev().copied().collect();
        // Each byte once, far from the previous one.
        let jumping: Vec<u8> = forwards.iter().map(|byte| byte.wrapping_mul(97)).collect();
        for order in [&forwards, &reversed, &jumping] {
            let (mut tree, mut model) = (Tree::default(), Model::new());
            for byte in order {
                tree.insert(row(&[3, *byte, 1], &[*byte]));
                model.insert(vec![3, *byte, 1], vec![*byte]);
                assert_is(&tree, &model);
            }
            for byte in order {
                assert!(tree.remove(&[3, *byte, 1]).is_some());
                model.remove([3, *byte, 1].as_slice());
                assert_is(&tree, &model);
                let expected: Vec<u8> = model.values().rev().flatten().copied().collect();
                assert_eq!(backwards(&tree), expected);
            }
            assert!(matches!(tree.root, Child::Empty));
        }
    }

    #[test]
    fn a_full_node_may_lose_and_get_the_same_byte_any_number_of_times() {
        let mut tree = Tree::default();
        for byte in 0..=u8::MAX {
            tree.insert(row(&[3, byte], &[byte]));
        }
        for _ in 0..70_000 {
            assert!(tree.remove(&[3, 7]).is_some());
            tree.insert(row(&[3, 7], &[7]));
        }
        assert_eq!(backwards(&tree).len(), 256);
    }

    #[test]
    fn keys_that_begin_with_each_other_need_little_stack() {
        // Members of a sorted set can make keys this long, and each key may be a prefix of the
        // next.
        let longest = vec![5; 1_000];
        let work = move || {
            let mut tree = Tree::default();
            for length in 0..=longest.len() {
                tree.insert(row(&longest[..length], b"value"));
            }
            let shared = tree.clone();
            tree.insert(row(&longest, b"another"));
            assert_eq!(tree.all().len(), longest.len() + 1);
            for length in (0..=longest.len()).rev() {
                assert!(tree.remove(&longest[..length]).is_some());
            }
            assert_eq!(shared.all().len(), longest.len() + 1);
        };
        // The default stack size of a thread.
        let thread = std::thread::Builder::new().stack_size(2 << 20);
        thread.spawn(work).unwrap().join().unwrap();
    }
}
