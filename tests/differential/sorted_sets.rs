//! Random sorted-set commands.

use crate::lists::{number_of, several_pop};
use crate::resp::Words;
use crate::words::Dice;

type Arguments = Vec<Vec<u8>>;

/// `with_score_ranks`: ZRANK's WITHSCORE, which the oldest supported Redis does not have.
pub fn command(dice: &mut Dice, with_score_ranks: bool) -> Words {
    let (name, arguments): (&str, Arguments) = match dice.below(60) {
        0..10 => ("ZADD", add(dice)),
        10 | 11 => ("ZINCRBY", vec![dice.key('z'), dice.score(), dice.value()]),
        12 | 13 => ("ZREM", [vec![dice.key('z')], dice.values()].concat()),
        14 => ("ZCARD", vec![dice.key('z')]),
        15 => ("ZSCORE", vec![dice.key('z'), dice.value()]),
        16 => ("ZMSCORE", [vec![dice.key('z')], dice.values()].concat()),
        17 | 18 => {
            let mut arguments = vec![dice.key('z'), dice.value()];
            if with_score_ranks && dice.one_in(2) {
                arguments.push(dice.word("WITHSCORE"));
            }
            (dice.pick(&["ZRANK", "ZREVRANK"]), arguments)
        }
        19 | 20 => (
            "ZCOUNT",
            vec![dice.key('z'), dice.score_bound(), dice.score_bound()],
        ),
        21 | 50 | 51 => return lexical(dice),
        22..26 => ("ZRANGE", [vec![dice.key('z')], range(dice, true)].concat()),
        26 | 27 => {
            let keys = vec![dice.key('z'), dice.key('z')];
            ("ZRANGESTORE", [keys, range(dice, false)].concat())
        }
        28 | 29 => score_range(dice),
        30 => return lexical(dice),
        31 => (
            "ZREVRANGE",
            [vec![dice.key('z')], rank_range(dice)].concat(),
        ),
        32..35 => {
            let mut arguments = vec![dice.key('z')];
            if dice.one_in(2) {
                arguments.push(dice.count());
            }
            (dice.pick(&["ZPOPMIN", "ZPOPMAX"]), arguments)
        }
        35 | 36 => ("ZMPOP", several_pop(dice, 'z', &["MIN", "MAX"])),
        37 if dice.one_in(2) => (
            "ZREMRANGEBYRANK",
            vec![dice.key('z'), dice.integer(), dice.integer()],
        ),
        38 if dice.one_in(2) => (
            "ZREMRANGEBYSCORE",
            vec![dice.key('z'), dice.score_bound(), dice.score_bound()],
        ),
        40..44 => algebra(dice),
        44..46 => algebra_store(dice),
        46 | 47 => ("ZINTERCARD", intersection_size(dice)),
        48..50 => ("ZRANDMEMBER", random_members(dice)),
        _ => ("ZADD", few(dice)),
    };
    std::iter::once(dice.word(name)).chain(arguments).collect()
}

/// A plain ZADD, so that there is something to find.
fn few(dice: &mut Dice) -> Arguments {
    let mut arguments = vec![dice.key('z')];
    for _ in 0..=dice.below(5) {
        arguments.push(dice.between(-5, 12).to_string().into_bytes());
        arguments.push(dice.value());
    }
    arguments
}

fn add(dice: &mut Dice) -> Arguments {
    let mut arguments = vec![dice.key('z')];
    for option in ["NX", "XX", "GT", "LT", "CH", "INCR"] {
        if dice.one_in(7) {
            arguments.push(dice.word(option));
        }
    }
    let count = if dice.one_in(20) {
        150
    } else {
        dice.below(3) + 1
    };
    // Ranges of members are meant for sets whose members all have one score.
    let same = dice.one_in(3).then(|| dice.score());
    for number in 0..count {
        arguments.push(same.clone().unwrap_or_else(|| dice.score()));
        arguments.push(if count > 3 {
            format!("n{number}").into_bytes()
        } else {
            dice.value()
        });
    }
    arguments
}

fn range(dice: &mut Dice, may_show_scores: bool) -> Arguments {
    let mut arguments = match dice.below(2) {
        0 => vec![dice.integer(), dice.integer()],
        _ => vec![dice.score_bound(), dice.score_bound(), dice.word("BYSCORE")],
    };
    after_bounds(dice, may_show_scores, &mut arguments);
    arguments
}

fn after_bounds(dice: &mut Dice, may_show_scores: bool, arguments: &mut Arguments) {
    if dice.one_in(3) {
        arguments.push(dice.word("REV"));
        arguments.swap(0, 1);
    }
    if dice.one_in(3) {
        arguments.extend(limit(dice));
    }
    if may_show_scores && dice.one_in(2) {
        arguments.push(dice.word("WITHSCORES"));
    }
}

fn limit(dice: &mut Dice) -> Arguments {
    vec![dice.word("LIMIT"), dice.integer(), dice.integer()]
}

fn rank_range(dice: &mut Dice) -> Arguments {
    let mut arguments = vec![dice.integer(), dice.integer()];
    if dice.one_in(2) {
        arguments.push(dice.word("WITHSCORES"));
    }
    arguments
}

fn score_range(dice: &mut Dice) -> (&'static str, Arguments) {
    let mut arguments = vec![dice.key('z'), dice.score_bound(), dice.score_bound()];
    if dice.one_in(2) {
        arguments.push(dice.word("WITHSCORES"));
    }
    if dice.one_in(3) {
        arguments.extend(limit(dice));
    }
    (dice.pick(&["ZRANGEBYSCORE", "ZREVRANGEBYSCORE"]), arguments)
}

/// Commands about members in their order, on separate sets in which all scores are equal. In other
/// sets Redis's replies depend on the random heights of its skip list.
fn lexical(dice: &mut Dice) -> Words {
    let key = dice.lexical_key();
    let bounds = vec![dice.lex_bound(), dice.lex_bound()];
    let (name, arguments): (&str, Arguments) = match dice.below(12) {
        0..4 => {
            let members = dice.values().into_iter();
            (
                "ZADD",
                members.flat_map(|member| [b"0".to_vec(), member]).collect(),
            )
        }
        4 => ("ZREM", dice.values()),
        5 => ("ZPOPMAX", vec![]),
        6 => ("ZLEXCOUNT", bounds),
        7 => ("ZREMRANGEBYLEX", bounds),
        8 => {
            let limit = if dice.one_in(3) { limit(dice) } else { vec![] };
            (
                dice.pick(&["ZRANGEBYLEX", "ZREVRANGEBYLEX"]),
                [bounds, limit].concat(),
            )
        }
        9 => {
            let mut arguments = [vec![key.clone()], bounds, vec![dice.word("BYLEX")]].concat();
            after_bounds(dice, false, &mut arguments);
            let words = [vec![dice.word("ZRANGESTORE"), dice.key('z')], arguments].concat();
            return words;
        }
        _ => {
            let mut arguments = [bounds, vec![dice.word("BYLEX")]].concat();
            after_bounds(dice, true, &mut arguments);
            ("ZRANGE", arguments)
        }
    };
    [vec![dice.word(name), key], arguments].concat()
}

/// A number of keys and the keys; now and then a list among them.
fn sources(dice: &mut Dice) -> (usize, Arguments) {
    let keys: Arguments = (0..=dice.below(3)).map(|_| dice.key('z')).collect();
    let mut arguments = vec![number_of(dice, keys.len())];
    let count = keys.len();
    arguments.extend(keys);
    (count, arguments)
}

fn weights(dice: &mut Dice, keys: usize) -> Arguments {
    let mut arguments = Vec::new();
    if dice.one_in(3) {
        arguments.push(dice.word("WEIGHTS"));
        arguments.extend((0..keys).map(|_| dice.score()));
    }
    if dice.one_in(3) {
        arguments.push(dice.word("AGGREGATE"));
        arguments.push(dice.choose_word(&["SUM", "MIN", "MAX"]));
    }
    arguments
}

fn algebra(dice: &mut Dice) -> (&'static str, Arguments) {
    let name = dice.pick(&["ZUNION", "ZINTER", "ZDIFF"]);
    let (keys, mut arguments) = sources(dice);
    if name != "ZDIFF" {
        arguments.extend(weights(dice, keys));
    }
    if dice.one_in(2) {
        arguments.push(dice.word("WITHSCORES"));
    }
    (name, arguments)
}

fn algebra_store(dice: &mut Dice) -> (&'static str, Arguments) {
    let name = dice.pick(&["ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE"]);
    let (keys, its_sources) = sources(dice);
    let mut arguments = [vec![dice.key('z')], its_sources].concat();
    if name != "ZDIFFSTORE" {
        arguments.extend(weights(dice, keys));
    }
    (name, arguments)
}

fn intersection_size(dice: &mut Dice) -> Arguments {
    let (_, mut arguments) = sources(dice);
    if dice.one_in(2) {
        arguments.push(dice.word("LIMIT"));
        arguments.push(dice.integer());
    }
    arguments
}

fn random_members(dice: &mut Dice) -> Arguments {
    let mut arguments = vec![dice.key('z')];
    if dice.one_in(2) {
        arguments.push(dice.random_count());
        if dice.one_in(2) {
            arguments.push(dice.word("WITHSCORES"));
        }
    }
    arguments
}
