//! Random hash commands.

use crate::resp::Words;
use crate::words::Dice;

type Arguments = Vec<Vec<u8>>;

pub fn command(dice: &mut Dice) -> Words {
    let (name, arguments): (&str, Arguments) = match dice.below(40) {
        0..10 => (
            dice.pick(&["HSET", "HSET", "HMSET"]),
            [vec![dice.key('h')], fields_and_values(dice)].concat(),
        ),
        10 | 11 => ("HSETNX", vec![dice.key('h'), dice.value(), dice.value()]),
        12..15 => (
            dice.pick(&["HGET", "HEXISTS", "HSTRLEN"]),
            vec![dice.key('h'), dice.value()],
        ),
        15 | 16 => ("HMGET", [vec![dice.key('h')], dice.values()].concat()),
        17..20 => (
            dice.pick(&["HGETALL", "HKEYS", "HVALS"]),
            vec![dice.key('h')],
        ),
        20 => ("HLEN", vec![dice.key('h')]),
        21..24 => ("HDEL", [vec![dice.key('h')], dice.values()].concat()),
        24..30 => (
            "HINCRBY",
            vec![dice.key('h'), counter(dice), dice.integer()],
        ),
        30..36 => (
            "HINCRBYFLOAT",
            vec![dice.key('h'), counter(dice), dice.long_double()],
        ),
        _ => ("HRANDFIELD", random_fields(dice)),
    };
    std::iter::once(dice.word(name)).chain(arguments).collect()
}

fn fields_and_values(dice: &mut Dice) -> Arguments {
    let fields = dice.values().into_iter();
    fields
        .flat_map(|field| {
            let value = match dice.below(4) {
                0 => dice.integer(),
                _ => dice.value(),
            };
            [field, value]
        })
        .collect()
}

/// A field that mostly holds a number.
fn counter(dice: &mut Dice) -> Vec<u8> {
    match dice.below(8) {
        0 => dice.value(),
        _ => format!("number{}", dice.below(5)).into_bytes(),
    }
}

fn random_fields(dice: &mut Dice) -> Arguments {
    let mut arguments = vec![dice.key('h')];
    if dice.one_in(3) {
        return arguments;
    }
    arguments.push(dice.random_count());
    if dice.one_in(2) {
        arguments.push(dice.word("WITHVALUES"));
    }
    arguments
}
