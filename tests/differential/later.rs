//! Random commands of the families whose replies have changed since Redis 7.2: geo positions,
//! bitmaps, LREM.

use crate::keys::Step;
use crate::resp::Words;
use crate::servers::{Batch, PROTOCOLS};
use crate::words::Dice;
use crate::{bitmaps, geo, lists, strings};

const STEPS: usize = 300;

/// The commands of a round.
pub fn history(seed: u64) -> Vec<Batch> {
    let mut dice = Dice::new(seed);
    let steps = (0..STEPS).map(|_| {
        let words = command(&mut dice);
        Batch {
            connection: dice.below(PROTOCOLS.len()),
            steps: vec![Step::Command(dice.spoil(words))],
        }
    });
    steps.collect()
}

fn command(dice: &mut Dice) -> Words {
    match dice.below(4) {
        0 => geo::command(dice),
        1 => bitmaps::command(dice),
        2 => lists::command(dice),
        _ => strings::command(dice),
    }
}
