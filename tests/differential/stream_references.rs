//! Random commands on streams with KEEPREF, DELREF and ACKED, which Redis has since 8.2, and XREAD
//! with `+`, which it has since 7.4.

use crate::keys::Step;
use crate::resp::Words;
use crate::servers::{Batch, PROTOCOLS};
use crate::words::Dice;
use crate::{stream_groups, streams};

const STEPS: usize = 300;
/// The ids of entries are below this.
const IDS: usize = 40;

/// The commands of a round.
pub fn history(seed: u64) -> Vec<Batch> {
    let mut dice = Dice::new(seed);
    let steps = (0..STEPS).map(|_| Batch {
        connection: dice.below(PROTOCOLS.len()),
        steps: vec![Step::Command(step(&mut dice))],
    });
    // A whole stream is one node. Redis stops if a node ends within what ACKED keeps.
    let nodes = (0..PROTOCOLS.len()).map(|connection| Batch {
        connection,
        steps: ["stream-node-max-entries", "stream-node-max-bytes"]
            .map(|name| {
                let words = ["CONFIG", "SET", name, "100000"];
                Step::Command(words.map(|word| word.as_bytes().to_vec()).to_vec())
            })
            .into(),
    });
    let steps: Vec<Batch> = steps.collect();
    nodes.chain(steps).collect()
}

fn step(dice: &mut Dice) -> Words {
    let words = match dice.below(10) {
        0 => streams::command(dice),
        1 | 2 => stream_groups::command(dice),
        _ => command(dice),
    };
    let words = dice.spoil(words);
    let is_read = crate::differences::upper(&words, 0) == "XREADGROUP";
    match is_read && words.iter().any(|word| word == b"+") {
        // Redis has another error for it since 7.4.
        true => vec![b"PING".to_vec()],
        false => words,
    }
}

fn command(dice: &mut Dice) -> Words {
    let key = dice.key('s');
    match dice.below(20) {
        0..5 => {
            let mut words = vec![dice.word("XADD"), key];
            words.extend(options(dice));
            words.push(format!("{}-*", IDS + dice.below(3)).into_bytes());
            words.extend([dice.value(), dice.value()]);
            words
        }
        5..9 => {
            let words = vec![dice.word("XADD"), key];
            let id = format!("{}-{}", dice.below(IDS), dice.below(2)).into_bytes();
            [words, vec![id, dice.value(), dice.value()]].concat()
        }
        9..12 => [vec![dice.word("XTRIM"), key], options(dice)].concat(),
        12 | 13 => {
            let words = vec![dice.word("XDELEX"), key];
            [words, references(dice), ids(dice)].concat()
        }
        14 | 15 => {
            let words = vec![dice.word("XACKDEL"), key, group(dice)];
            [words, references(dice), ids(dice)].concat()
        }
        16 => {
            let words = vec![dice.word("XREAD"), dice.word("STREAMS"), key];
            [words, vec![b"+".to_vec()]].concat()
        }
        17 => {
            let words = [dice.word("XGROUP"), dice.word("CREATE"), key, group(dice)];
            [words.to_vec(), vec![b"0".to_vec()]].concat()
        }
        _ => {
            let words = [dice.word("XREADGROUP"), dice.word("GROUP"), group(dice)];
            let count = dice.between(1, 6).to_string().into_bytes();
            let count = [b"a".to_vec(), dice.word("COUNT"), count];
            let streams = [dice.word("STREAMS"), key, b">".to_vec()];
            [words, count, streams].concat()
        }
    }
}

fn group(dice: &mut Dice) -> Vec<u8> {
    dice.pick(&["g", "g", "g", "h"]).into()
}

fn references(dice: &mut Dice) -> Words {
    match dice.below(5) {
        0 => vec![],
        _ => vec![dice.choose_word(&["KEEPREF", "DELREF", "DELREF", "ACKED", "ACKED"])],
    }
}

fn ids(dice: &mut Dice) -> Words {
    let ids: Words = (0..=dice.below(4)).map(|_| streams::id(dice)).collect();
    let count = match dice.one_in(12) {
        true => dice.integer(),
        false => ids.len().to_string().into_bytes(),
    };
    [vec![dice.word("IDS"), count], ids].concat()
}

/// How to trim a stream, and what to do with references.
fn options(dice: &mut Dice) -> Words {
    let is_maxlen = dice.one_in(2);
    let mut trim = vec![dice.word(if is_maxlen { "MAXLEN" } else { "MINID" })];
    let is_approximate = dice.one_in(2);
    if is_approximate {
        trim.push(b"~".to_vec());
    }
    trim.push(match is_maxlen {
        true => dice.below(12).to_string().into_bytes(),
        false => dice.below(IDS).to_string().into_bytes(),
    });
    if is_approximate && dice.one_in(4) {
        trim.extend([dice.word("LIMIT"), dice.below(30).to_string().into_bytes()]);
    }
    // Redis 8.2.3 removes nothing with `~` and DELREF or ACKED. Later versions do.
    let references = match is_approximate {
        true => vec![dice.word("KEEPREF")],
        false => references(dice),
    };
    match dice.one_in(2) {
        true => [references, trim].concat(),
        false => [trim, references].concat(),
    }
}
