//! Random commands compared with a model. Elements have all sizes, so the list mixes rows of one
//! element with runs and splits runs everywhere.

use std::collections::VecDeque;

use bytes::Bytes;

use quoin_base::limits::VALUE_CHUNK_BYTES_MAX;
use quoin_base::random::{Random, SeededRandom};
use quoin_engine::testing::ranks::{SMALL, check_blocks, maintain};
use quoin_engine::testing::{Bench, call};
use quoin_layout::{RUN_ELEMENT_BYTES_MAX, RUN_ELEMENTS_MAX};
use quoin_resp::reply::Reply;

const STEPS: usize = 600;
const LENGTH_MAX: usize = 700;
/// The limit for a list with counted blocks.
const LENGTH_WITH_BLOCKS_MAX: usize = 2_600;

fn below(random: &SeededRandom, end: usize) -> usize {
    (random.next_u64() % end as u64) as usize
}

/// A list and its expected elements.
struct Model<'b> {
    bench: &'b Bench,
    random: SeededRandom,
    elements: VecDeque<Bytes>,
    length_max: usize,
    made: usize,
}

impl Model<'_> {
    /// A new element. Some repeat, so that LPOS and LREM find several.
    fn element(&mut self) -> Bytes {
        self.made += 1;
        let length = match below(&self.random, 40) {
            0..20 => 2 + below(&self.random, 20),
            20..28 => 250 + below(&self.random, 10),
            28..35 => 500 + below(&self.random, 300),
            35..38 => RUN_ELEMENT_BYTES_MAX - 2 + below(&self.random, 4),
            38 => 0,
            _ => 4_000,
        };
        if below(&self.random, 2_000) == 0 {
            return Bytes::from(vec![b'x'; VALUE_CHUNK_BYTES_MAX + 1]);
        }
        let mut bytes = format!("{}", self.made % 50).into_bytes();
        bytes.resize(length, b'.');
        bytes.into()
    }

    fn run(&self, words: &[Bytes]) -> Reply {
        let words: Vec<&[u8]> = words.iter().map(|word| &word[..]).collect();
        self.bench.run_words(&words)
    }

    fn command(&self, line: &str, last: &[Bytes]) -> Reply {
        let words = line.split(' ').map(|word| Bytes::from(word.to_owned()));
        self.run(&words.chain(last.iter().cloned()).collect::<Vec<_>>())
    }

    fn length(&self) -> Reply {
        Reply::Integer(self.elements.len() as i64)
    }

    fn check(&self) {
        let expected: Vec<Reply> = self.elements.iter().cloned().map(Reply::Bulk).collect();
        assert_eq!(self.command("LRANGE l 0 -1", &[]), Reply::Array(expected));
        assert_eq!(self.command("LLEN l", &[]), self.length());
    }

    /// Several commands of one client in one batch.
    fn push_in_batch(&mut self, is_left: bool) {
        let name: &[u8] = if is_left { b"LPUSH" } else { b"RPUSH" };
        let count = 1 + below(&self.random, 40);
        let pushed: Vec<Bytes> = (0..count).map(|_| self.element()).collect();
        let calls = { pushed.iter() }.map(|element| call(0, &[name, b"l", element]));
        let finished = self.bench.executor.submit(calls.collect());
        let replies = self.bench.block_on(finished).unwrap().replies;
        for (element, reply) in pushed.into_iter().zip(replies) {
            if is_left {
                self.elements.push_front(element);
            } else {
                self.elements.push_back(element);
            }
            assert_eq!(reply, self.length());
        }
    }

    fn pop(&mut self, is_left: bool) {
        let count = match below(&self.random, 3) {
            0 => 1,
            1 => 1 + below(&self.random, 10),
            _ => 1 + below(&self.random, 300),
        };
        let line = if is_left { "LPOP l" } else { "RPOP l" };
        let reply = self.command(&format!("{line} {count}"), &[]);
        let mut expected = Vec::new();
        while expected.len() < count
            && let Some(element) = match is_left {
                true => self.elements.pop_front(),
                false => self.elements.pop_back(),
            }
        {
            expected.push(Reply::Bulk(element));
        }
        match expected.as_slice() {
            [] => assert_eq!(reply, Reply::NullArray),
            _ => assert_eq!(reply, Reply::Array(expected)),
        }
    }

    fn place(&self) -> Option<usize> {
        let length = self.elements.len();
        (length > 0).then(|| below(&self.random, length))
    }

    fn read(&mut self) {
        let Some(place) = self.place() else { return };
        let element = self.elements[place].clone();
        let reply = self.command(&format!("LINDEX l {place}"), &[]);
        assert_eq!(reply, Reply::Bulk(element.clone()));
        let from_end = place as i64 - self.elements.len() as i64;
        let reply = self.command(&format!("LINDEX l {from_end}"), &[]);
        assert_eq!(reply, Reply::Bulk(element.clone()));
        let stop = place + below(&self.random, 30);
        let some = self.elements.iter().skip(place).take(stop - place + 1);
        let expected = some.cloned().map(Reply::Bulk).collect();
        let reply = self.command(&format!("LRANGE l {place} {stop}"), &[]);
        assert_eq!(reply, Reply::Array(expected));
        let all = self.elements.iter().enumerate();
        let same = all.filter(|(_, one)| **one == element);
        let places = same.map(|(place, _)| Reply::Integer(place as i64));
        let places: Vec<Reply> = places.collect();
        let reply = self.command("LPOS l", &[element.clone(), "COUNT".into(), "0".into()]);
        assert_eq!(reply, Reply::Array(places.clone()));
        let last = self.command("LPOS l", &[element, "RANK".into(), "-1".into()]);
        assert_eq!(Some(&last), places.last());
    }

    fn change(&mut self) {
        let Some(place) = self.place() else { return };
        let pivot = self.elements[place].clone();
        let first = self.elements.iter().position(|one| *one == pivot).unwrap();
        let element = self.element();
        match below(&self.random, 5) {
            0 => {
                self.command(&format!("LSET l {place}"), std::slice::from_ref(&element));
                self.elements[place] = element;
            }
            1 => {
                let reply = self.command("LINSERT l BEFORE", &[pivot, element.clone()]);
                self.elements.insert(first, element);
                assert_eq!(reply, self.length());
            }
            2 => {
                let reply = self.command("LINSERT l AFTER", &[pivot, element.clone()]);
                self.elements.insert(first + 1, element);
                assert_eq!(reply, self.length());
            }
            3 => {
                let count = below(&self.random, 4) as i64 - 1;
                let reply = self.command(&format!("LREM l {count}"), std::slice::from_ref(&pivot));
                let before = self.elements.len();
                let mut left = if count == 0 {
                    usize::MAX
                } else {
                    1.max(count) as usize
                };
                let mut keep = |one: &Bytes| {
                    let is_removed = *one == pivot && left > 0;
                    left -= usize::from(is_removed);
                    !is_removed
                };
                if count < 0 {
                    let kept = self.elements.iter().rev().filter(|one| keep(one)).cloned();
                    self.elements = kept.collect::<Vec<_>>().into_iter().rev().collect();
                } else {
                    self.elements.retain(keep);
                }
                let removed = before - self.elements.len();
                assert_eq!(reply, Reply::Integer(removed as i64));
            }
            _ => {
                let kept = below(&self.random, self.elements.len() - place) + 1;
                // Large trims are rare, or the list stays short.
                if kept + 40 < self.elements.len() && below(&self.random, 10) > 0 {
                    return;
                }
                let stop = place + kept - 1;
                self.command(&format!("LTRIM l {place} {stop}"), &[]);
                self.elements.drain(..place);
                self.elements.truncate(kept);
            }
        }
    }

    fn step(&mut self) {
        let is_left = below(&self.random, 2) == 0;
        match below(&self.random, 10) {
            0..3 if self.elements.len() < self.length_max => self.push_in_batch(is_left),
            3 => {
                let count = 1 + below(&self.random, 2 * RUN_ELEMENTS_MAX);
                let pushed: Vec<Bytes> = (0..count).map(|_| self.element()).collect();
                let line = if is_left { "LPUSH l" } else { "RPUSH l" };
                let reply = self.command(line, &pushed);
                for element in pushed {
                    if is_left {
                        self.elements.push_front(element);
                    } else {
                        self.elements.push_back(element);
                    }
                }
                assert_eq!(reply, self.length());
            }
            4..6 => self.pop(is_left),
            6 => self.read(),
            7 if !self.elements.is_empty() => {
                let ends = match is_left {
                    true => "LMOVE l l LEFT RIGHT",
                    false => "LMOVE l l RIGHT LEFT",
                };
                let reply = self.command(ends, &[]);
                let moved = match is_left {
                    true => self.elements.pop_front(),
                    false => self.elements.pop_back(),
                };
                let moved = moved.unwrap();
                assert_eq!(reply, Reply::Bulk(moved.clone()));
                match is_left {
                    true => self.elements.push_back(moved),
                    false => self.elements.push_front(moved),
                }
            }
            _ => self.change(),
        }
    }
}

impl<'b> Model<'b> {
    fn new(bench: &'b Bench, seed: u64, length_max: usize) -> Self {
        Self {
            bench,
            random: SeededRandom::new(seed),
            elements: VecDeque::new(),
            length_max,
            made: 0,
        }
    }
}

fn agrees_with_the_model(bench: &Bench, seed: u64) {
    let mut model = Model::new(bench, seed, LENGTH_MAX);
    for step in 0..STEPS {
        model.step();
        if step % 10 == 0 {
            model.check();
        }
    }
    model.check();
    model.command("DEL l", &[]);
}

fn agrees_with_the_model_with_blocks(bench: &Bench, seed: u64) {
    let mut model = Model::new(bench, seed, LENGTH_WITH_BLOCKS_MAX);
    let (mut blocks_max, mut levels_max) = (0, 0);
    for step in 0..STEPS {
        model.step();
        if step % 7 == 0 {
            maintain(bench, "l", &SMALL);
        }
        if step % 3 == 0 {
            let blocks = check_blocks(bench, "l");
            levels_max = levels_max.max(blocks.len());
            blocks_max = blocks_max.max(blocks.first().copied().unwrap_or(0));
        }
        model.read();
        if step % 20 == 0 {
            model.check();
        }
    }
    assert!(
        blocks_max > 20 && levels_max > 1,
        "{blocks_max} {levels_max}"
    );
    model.command("DEL l", &[]);
}

#[test]
fn lists_agree_with_a_model_on_the_embedded_store() {
    agrees_with_the_model(&Bench::embedded(), 1);
}

#[test]
fn lists_agree_with_a_model_on_a_cluster() {
    agrees_with_the_model(&Bench::cluster_like(), 2);
}

#[test]
fn lists_with_blocks_agree_with_a_model_on_the_embedded_store() {
    agrees_with_the_model_with_blocks(&Bench::embedded(), 3);
}

#[test]
fn lists_with_blocks_agree_with_a_model_on_a_cluster() {
    agrees_with_the_model_with_blocks(&Bench::cluster_like(), 4);
}
