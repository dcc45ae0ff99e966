//! Which names match random glob patterns, compared with Redis.

use crate::number_of_environment;
use crate::resp::Value;
use crate::servers::{Servers, show};
use crate::words::Dice;

const NAMES: usize = 400;
const PATTERNS: usize = 3_000;

/// The letters of names and patterns. There are few, so that patterns match.
const LETTERS: &[u8] = b"aaabb-^]";
const SPECIAL: &[u8] = b"**??[[]]^^--\\aab";

fn text(dice: &mut Dice, letters: &[u8], length_max: usize) -> Vec<u8> {
    let length = dice.below(length_max + 1);
    let letter = |dice: &mut Dice| letters[dice.below(letters.len())];
    (0..length).map(|_| letter(dice)).collect()
}

#[test]
fn random_patterns_match_the_names_that_they_match_in_redis() {
    let mut servers = Servers::start().unwrap();
    servers.reset();
    let mut dice = Dice::new(number_of_environment("QUOIN_TEST_SEED").unwrap_or(1));
    let mut words: Vec<Vec<u8>> = vec![b"SADD".to_vec(), b"names".to_vec()];
    words.extend((0..NAMES).map(|_| text(&mut dice, LETTERS, 9)));
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    assert_eq!(servers.ask(true, &words), servers.ask(false, &words));
    let mut matched = 0;
    for _ in 0..PATTERNS {
        let pattern = text(&mut dice, SPECIAL, 10);
        let asked: Vec<&[u8]> = vec![
            b"SSCAN", b"names", b"0", b"MATCH", &pattern, b"COUNT", b"9999",
        ];
        let [ours, theirs] = [true, false].map(|ours| found(&servers.ask(ours, &asked)));
        matched += theirs.len();
        let shown = show(&vec![pattern.clone()]);
        assert_eq!(ours, theirs, "{shown}");
    }
    assert!(matched > PATTERNS, "{matched}");
}

/// The names in a complete reply to SSCAN.
fn found(reply: &Value) -> Vec<Vec<u8>> {
    let parts = reply.items().unwrap_or_default();
    let [cursor, names] = parts else {
        panic!("{reply:?}");
    };
    assert_eq!(cursor.bytes(), Some(b"0".as_slice()));
    let names = names.items().unwrap_or_default().iter();
    let mut names: Vec<Vec<u8>> = names.map(|name| name.bytes().unwrap().to_vec()).collect();
    names.sort();
    names
}
