//! Random GEO commands, on sorted sets that ZADD and its like change too.

use crate::resp::Words;
use crate::words::Dice;

type Arguments = Vec<Vec<u8>>;

pub fn command(dice: &mut Dice) -> Words {
    let (name, arguments): (&str, Arguments) = match dice.below(20) {
        0..6 => ("GEOADD", add(dice)),
        6 => {
            let mut arguments = vec![dice.key('g'), dice.value(), dice.value()];
            if dice.one_in(2) {
                arguments.push(unit(dice));
            }
            ("GEODIST", arguments)
        }
        7 => ("GEOHASH", [vec![dice.key('g')], dice.values()].concat()),
        8 => ("GEOPOS", [vec![dice.key('g')], dice.values()].concat()),
        9 => (
            "ZADD",
            vec![
                dice.key('g'),
                dice.score(),
                dice.value(),
                dice.score(),
                dice.value(),
            ],
        ),
        10..12 => {
            let name = dice.pick(&["GEORADIUS", "GEORADIUS_RO"]);
            let mut arguments = [vec![dice.key('g')], place(dice), circle(dice)].concat();
            options(dice, !name.ends_with("RO"), &mut arguments);
            (name, arguments)
        }
        12 | 13 => {
            let name = dice.pick(&["GEORADIUSBYMEMBER", "GEORADIUSBYMEMBER_RO"]);
            let mut arguments = [vec![dice.key('g'), dice.value()], circle(dice)].concat();
            options(dice, !name.ends_with("RO"), &mut arguments);
            (name, arguments)
        }
        14..18 => {
            let mut arguments = [vec![dice.key('g')], area(dice)].concat();
            options(dice, false, &mut arguments);
            ("GEOSEARCH", arguments)
        }
        _ => {
            let mut arguments = [vec![dice.key('g'), dice.key('g')], area(dice)].concat();
            if dice.one_in(3) {
                arguments.push(dice.word("STOREDIST"));
            }
            count_and_order(dice, &mut arguments);
            ("GEOSEARCHSTORE", arguments)
        }
    };
    std::iter::once(dice.word(name)).chain(arguments).collect()
}

fn add(dice: &mut Dice) -> Arguments {
    let mut arguments = vec![dice.key('g')];
    for option in ["NX", "XX", "CH"] {
        if dice.one_in(8) {
            arguments.push(dice.word(option));
        }
    }
    let count = match dice.below(15) {
        0 => 150,
        1..4 => 30,
        _ => dice.below(4) + 1,
    };
    // Members at one place are equally far from everywhere.
    let same = dice.one_in(4).then(|| place(dice));
    for number in 0..count {
        let is_same = dice.one_in(2);
        match &same {
            Some(place) if is_same => arguments.extend(place.clone()),
            _ => arguments.extend(place(dice)),
        }
        arguments.push(match count {
            150 => format!("n{number}").into_bytes(),
            _ => dice.value(),
        });
    }
    arguments
}

/// Longitude and latitude: mostly near each other, now and then anywhere, at an edge, or nowhere.
fn place(dice: &mut Dice) -> Arguments {
    let (longitude, latitude) = match dice.below(40) {
        0 => (dice.score(), dice.score()),
        1..6 => {
            let longitude = dice.pick(&["180", "-180", "179.999999", "-179.999999", "0", "90"]);
            let latitude = dice.pick(&[
                "85.05112878",
                "-85.05112878",
                "85",
                "-84.9",
                "0",
                "67",
                "-0",
            ]);
            (longitude.as_bytes().to_vec(), latitude.as_bytes().to_vec())
        }
        6..12 => (degrees(dice, 0.0, 180.0), degrees(dice, 0.0, 85.0)),
        12..16 => (degrees(dice, 0.0, 180.0), degrees(dice, 83.0, 2.0)),
        16..24 => (degrees(dice, 13.4, 0.01), degrees(dice, 52.5, 0.01)),
        24..28 => {
            let (longitude, latitude) = (dice.between(12, 15), dice.between(51, 54));
            (
                longitude.to_string().into_bytes(),
                latitude.to_string().into_bytes(),
            )
        }
        _ => (degrees(dice, 13.4, 3.0), degrees(dice, 52.5, 3.0)),
    };
    vec![longitude, latitude]
}

fn degrees(dice: &mut Dice, middle: f64, reach: f64) -> Vec<u8> {
    let decimals = dice.below(17);
    let number = middle + reach * (dice.fraction() * 2.0 - 1.0);
    format!("{number:.decimals$}").into_bytes()
}

fn unit(dice: &mut Dice) -> Vec<u8> {
    match dice.below(20) {
        0 => b"parsec".to_vec(),
        _ => dice.choose_word(&["M", "KM", "FT", "MI"]),
    }
}

fn length(dice: &mut Dice) -> Vec<u8> {
    match dice.below(24) {
        0 => dice.score(),
        1 => b"0".to_vec(),
        2 => dice.pick(&["-0", "inf", "1e-300", "-1", "1e300"]).into(),
        _ => {
            let number = dice.fraction() * 10_f64.powi(i32::try_from(dice.below(9)).unwrap());
            number.to_string().into_bytes()
        }
    }
}

fn circle(dice: &mut Dice) -> Arguments {
    vec![length(dice), unit(dice)]
}

/// From where and how far, in either order. Occasionally twice, or not at all.
fn area(dice: &mut Dice) -> Arguments {
    let mut parts = vec![from(dice), by(dice)];
    if dice.one_in(20) {
        let part = if dice.one_in(2) { from(dice) } else { by(dice) };
        parts.push(part);
    }
    if dice.one_in(30) {
        parts.pop();
    }
    if dice.one_in(3) {
        parts.reverse();
    }
    parts.concat()
}

fn from(dice: &mut Dice) -> Arguments {
    if dice.one_in(2) {
        vec![dice.word("FROMMEMBER"), dice.value()]
    } else {
        [vec![dice.word("FROMLONLAT")], place(dice)].concat()
    }
}

fn by(dice: &mut Dice) -> Arguments {
    if dice.one_in(2) {
        [vec![dice.word("BYRADIUS")], circle(dice)].concat()
    } else {
        vec![dice.word("BYBOX"), length(dice), length(dice), unit(dice)]
    }
}

fn options(dice: &mut Dice, may_store: bool, arguments: &mut Arguments) {
    for option in ["WITHCOORD", "WITHDIST", "WITHHASH"] {
        if dice.one_in(3) {
            arguments.push(dice.word(option));
        }
    }
    count_and_order(dice, arguments);
    if (may_store && dice.one_in(3)) || dice.one_in(30) {
        if dice.one_in(2) {
            arguments.retain(|word| !word.to_ascii_uppercase().starts_with(b"WITH"));
        }
        arguments.push(dice.choose_word(&["STORE", "STOREDIST"]));
        arguments.push(dice.key('g'));
    }
}

fn count_and_order(dice: &mut Dice, arguments: &mut Arguments) {
    if dice.one_in(2) {
        arguments.push(dice.word("COUNT"));
        arguments.push(match dice.below(6) {
            0 => dice.integer(),
            1 => dice.between(10, 100).to_string().into_bytes(),
            _ => dice.count(),
        });
    }
    if dice.one_in(5) {
        arguments.push(dice.word("ANY"));
    }
    if dice.one_in(2) {
        arguments.push(dice.choose_word(&["ASC", "DESC"]));
    }
}
