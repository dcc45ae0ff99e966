//! Random set commands.

use crate::differences::upper;
use crate::lists::number_of;
use crate::resp::Words;
use crate::words::Dice;

type Arguments = Vec<Vec<u8>>;

pub fn command(dice: &mut Dice) -> Words {
    let (name, arguments): (&str, Arguments) = match dice.below(40) {
        0..10 => ("SADD", [vec![dice.key('m')], members(dice)].concat()),
        10..13 => ("SREM", [vec![dice.key('m')], members(dice)].concat()),
        13 => ("SISMEMBER", vec![dice.key('m'), dice.value()]),
        14 => ("SMISMEMBER", [vec![dice.key('m')], dice.values()].concat()),
        15 | 16 => ("SMEMBERS", vec![dice.key('m')]),
        17 => ("SCARD", vec![dice.key('m')]),
        18..22 => ("SMOVE", vec![dice.key('m'), dice.key('m'), dice.value()]),
        22 => ("SPOP", vec![dice.key('m'), count_of_all(dice)]),
        23 | 24 => {
            let mut arguments = vec![dice.key('m')];
            if dice.one_in(2) {
                arguments.push(dice.random_count());
            }
            ("SRANDMEMBER", arguments)
        }
        25..31 => (dice.pick(&["SUNION", "SINTER", "SDIFF"]), some_keys(dice)),
        31 | 32 => {
            let keys = some_keys(dice);
            let mut arguments = [vec![number_of(dice, keys.len())], keys].concat();
            if dice.one_in(2) {
                arguments.push(dice.word("LIMIT"));
                arguments.push(dice.count());
            }
            ("SINTERCARD", arguments)
        }
        _ => (
            dice.pick(&["SUNIONSTORE", "SINTERSTORE", "SDIFFSTORE"]),
            [vec![dice.key('m')], some_keys(dice)].concat(),
        ),
    };
    std::iter::once(dice.word(name)).chain(arguments).collect()
}

/// Whole numbers, or anything.
fn members(dice: &mut Dice) -> Arguments {
    match dice.one_in(3) {
        true => (0..=dice.below(20))
            .map(|_| dice.between(-40, 40).to_string().into_bytes())
            .collect(),
        false => dice.values(),
    }
}

fn some_keys(dice: &mut Dice) -> Arguments {
    (0..=dice.below(3)).map(|_| dice.key('m')).collect()
}

/// A count with which SPOP takes all or nothing, so that both servers keep the same members.
fn count_of_all(dice: &mut Dice) -> Vec<u8> {
    let counts = ["1000000", "1000000", "0", "-1", "abc", "1.5", ""];
    dice.pick(&counts).into()
}

/// Replaces a pop that became random by mistake with a read.
pub fn without_chance(mut words: Words) -> Words {
    if upper(&words, 0) == "SPOP" && words.len() == 2 {
        words[0] = b"SCARD".to_vec();
    }
    words
}
