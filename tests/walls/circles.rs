//! Circles of a directed graph: its strongly connected components (Tarjan).

use std::collections::{BTreeMap, BTreeSet};

/// The sets of nodes that reach each other.
pub(crate) fn find<'n>(arrows: &[(&'n str, &'n str)]) -> Vec<BTreeSet<&'n str>> {
    let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in arrows {
        graph.entry(from).or_default().insert(to);
        graph.entry(to).or_default();
    }
    let mut search = Search::default();
    for node in graph.keys() {
        if !search.numbers.contains_key(node) {
            search.visit(node, &graph);
        }
    }
    search.circles
}

#[derive(Default)]
struct Search<'n> {
    numbers: BTreeMap<&'n str, usize>,
    lowest: BTreeMap<&'n str, usize>,
    stack: Vec<&'n str>,
    circles: Vec<BTreeSet<&'n str>>,
}

impl<'n> Search<'n> {
    fn visit(&mut self, node: &'n str, graph: &BTreeMap<&'n str, BTreeSet<&'n str>>) {
        let number = self.numbers.len();
        self.numbers.insert(node, number);
        self.lowest.insert(node, number);
        self.stack.push(node);
        for next in &graph[node] {
            if !self.numbers.contains_key(next) {
                self.visit(next, graph);
            }
            if self.stack.contains(next) {
                let lowest = self.lowest[node].min(self.lowest[next]);
                self.lowest.insert(node, lowest);
            }
        }
        if self.lowest[node] == number {
            let at = self.stack.iter().position(|other| *other == node).unwrap();
            let circle: BTreeSet<&str> = self.stack.drain(at..).collect();
            if circle.len() > 1 {
                self.circles.push(circle);
            }
        }
    }
}

#[test]
fn a_circle_is_found_and_a_line_is_none() {
    let arrows = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e")];
    assert_eq!(find(&arrows), [BTreeSet::from(["a", "b", "c"])]);
    assert!(find(&arrows[3..]).is_empty());
}
