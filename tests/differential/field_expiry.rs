//! Random commands on hashes with fields that expire, which Redis has since 7.4 and 8.0. Times are
//! far away or past, so it does not matter when a server removes expired fields.

use crate::hashes;
use crate::keys::Step;
use crate::resp::Words;
use crate::servers::{Batch, PROTOCOLS};
use crate::words::Dice;

const STEPS: usize = 300;

/// The commands of a round.
pub fn history(seed: u64) -> Vec<Batch> {
    let mut dice = Dice::new(seed);
    let steps = (0..STEPS).map(|_| Batch {
        connection: dice.below(PROTOCOLS.len()),
        steps: vec![step(&mut dice)],
    });
    steps.collect()
}

fn step(dice: &mut Dice) -> Step {
    if dice.one_in(3) {
        let words = hashes::command(dice);
        // The drawn fields are random.
        return Step::Command(
            match words
                .first()
                .is_some_and(|name| name.eq_ignore_ascii_case(b"HRANDFIELD"))
            {
                true => vec![b"HLEN".to_vec(), dice.key('h')],
                false => words,
            },
        );
    }
    if dice.one_in(15) {
        let mut words = vec![dice.word("HSCAN"), dice.key('h'), b"0".to_vec()];
        if dice.one_in(2) {
            words.extend([dice.word("COUNT"), b"2".to_vec()]);
        }
        words.push(dice.word("NOVALUES"));
        return Step::Iteration(words, 2);
    }
    let words = command(dice);
    Step::Command(dice.spoil(words))
}

fn command(dice: &mut Dice) -> Words {
    let fields = dice.values();
    let number = match dice.one_in(20) {
        true => dice.integer(),
        false => fields.len().to_string().into_bytes(),
    };
    let named =
        |dice: &mut Dice| [vec![dice.word("FIELDS"), number.clone()], fields.clone()].concat();
    let (name, middle, end): (&str, Words, Words) = match dice.below(14) {
        0..5 => {
            let name = dice.pick(&["HEXPIREAT", "HPEXPIREAT", "HPEXPIREAT"]);
            let condition = match dice.one_in(2) {
                true => vec![],
                false => vec![dice.choose_word(&["NX", "XX", "GT", "LT"])],
            };
            (name, [vec![time(dice)], condition].concat(), named(dice))
        }
        5..7 => (
            dice.pick(&["HEXPIRETIME", "HPEXPIRETIME"]),
            vec![],
            named(dice),
        ),
        7 => ("HPERSIST", vec![], named(dice)),
        8 => ("HGETDEL", vec![], named(dice)),
        9 | 10 => ("HGETEX", option(dice, "PERSIST"), named(dice)),
        11 => ("COPY", vec![], vec![dice.key('h'), dice.word("REPLACE")]),
        _ => {
            let condition = match dice.one_in(2) {
                true => vec![],
                false => vec![dice.choose_word(&["FNX", "FXX"])],
            };
            let pairs = fields
                .iter()
                .flat_map(|field| [field.clone(), dice.value()]);
            let pairs: Words = pairs.collect();
            let end = [vec![dice.word("FIELDS"), number.clone()], pairs].concat();
            ("HSETEX", [condition, option(dice, "KEEPTTL")].concat(), end)
        }
    };
    [vec![dice.word(name), dice.key('h')], middle, end].concat()
}

/// One of a few times, so that some are equal, and some past or out of range.
fn time(dice: &mut Dice) -> Vec<u8> {
    match dice.below(12) {
        0 => dice.integer(),
        1 => b"70368744177664".to_vec(),
        2 => b"1000".to_vec(),
        _ => format!("{}", 4_000_000_000 + dice.below(4) * 1_000).into_bytes(),
    }
}

fn option(dice: &mut Dice, other: &str) -> Words {
    match dice.below(4) {
        0 => vec![],
        1 => vec![dice.word(other)],
        _ => vec![dice.choose_word(&["EXAT", "PXAT"]), time(dice)],
    }
}
