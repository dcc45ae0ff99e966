//! Searches with the index find the same tasks as a full scan.

use super::*;

/// A task for the full scan.
#[derive(Clone)]
struct Known {
    id: String,
    priority: i64,
    number: usize,
    needs: Vec<(usize, u64)>,
    group: Option<u64>,
}

/// Groups come in order, followed by tasks without a group.
fn group_place(group: Option<u64>) -> (bool, Option<u64>) {
    (group.is_none(), group)
}

fn words(needs: &[(usize, u64)]) -> String {
    needs
        .iter()
        .map(|(name, amount)| format!(" r{name} {amount}"))
        .collect()
}

struct Shape {
    priorities: u64,
    resources: u64,
    amount_max: u64,
    /// Half of the tasks need little of one resource and much of another, and the others the
    /// opposite.
    is_adverse: bool,
    /// Number of groups. An eighth of the tasks has none.
    groups: u64,
}

fn needs(random: &SeededRandom, shape: &Shape) -> Vec<(usize, u64)> {
    if shape.is_adverse {
        let (little, much) = (1 + random.below(3), 90 + random.below(10));
        return if random.below(2) == 0 {
            vec![(0, little), (1, much)]
        } else {
            vec![(0, much), (1, little)]
        };
    }
    (0..shape.resources as usize)
        .filter(|_| random.below(8) != 0)
        .map(|name| (name, 1 + random.below(shape.amount_max)))
        .collect()
}

/// `last`: the group that had the last turn.
fn first_that_fits(known: &[Known], having: &[(usize, u64)], last: Option<u64>) -> Option<usize> {
    let turn = |group| (group_place(group) <= group_place(last), group_place(group));
    let has = |name: usize| {
        having
            .iter()
            .find(|(has, _)| *has == name)
            .map_or(0, |(_, n)| *n)
    };
    known
        .iter()
        .enumerate()
        .filter(|(_, task)| {
            task.needs
                .iter()
                .all(|(name, amount)| *amount <= has(*name))
        })
        .min_by_key(|(_, task)| (turn(task.group), task.priority, task.number))
        .map(|(at, _)| at)
}

fn compare(bench: &Bench, seed: u64, shape: &Shape, rounds: usize) {
    let random = SeededRandom::new(seed);
    let mut known: Vec<Known> = Vec::new();
    let mut number = 0;
    let mut last = None;
    for round in 0..rounds {
        // Some rounds take more tasks than they add.
        let adds = if round % 3 == 2 { 60 } else { 500 };
        let mut lines = Vec::new();
        let mut expected = Vec::new();
        for _ in 0..adds {
            let task = Known {
                id: format!("t{number}"),
                priority: random.below(shape.priorities) as i64,
                number,
                needs: needs(&random, shape),
                group: (shape.groups > 0 && random.below(8) > 0)
                    .then(|| random.below(shape.groups)),
            };
            let group = { task.group.iter() }.map(|group| format!(" GROUP g{group:04}"));
            let group: String = group.collect();
            let wanted = if task.needs.is_empty() { "" } else { " NEEDS" };
            lines.push(format!(
                "TASK.ADD q {} p ID {}{wanted}{}{group}",
                task.priority,
                task.id,
                words(&task.needs)
            ));
            expected.push(None);
            known.push(task);
            number += 1;
        }
        for _ in 0..(if round % 3 == 2 { 400 } else { 40 }) {
            let scale = [
                shape.amount_max / 30 + 1,
                shape.amount_max / 4 + 2,
                shape.amount_max,
            ][random.below(3) as usize];
            let mut having: Vec<_> = (0..shape.resources as usize)
                .map(|name| (name, 1 + random.below(scale)))
                .collect();
            having.truncate(1 + random.below(shape.resources * 4) as usize);
            let found = first_that_fits(&known, &having, last);
            lines.push(format!("TASK.TAKE q HAVING{}", words(&having)));
            let found = found.map(|at| known.swap_remove(at));
            last = found.as_ref().map_or(last, |found| found.group);
            expected.push(Some(found.map(|found| found.id)));
        }
        for (at, (reply, expected)) in bench.run_all(&lines).iter().zip(&expected).enumerate() {
            if let Some(expected) = expected {
                let found = ids(reply).pop();
                assert_eq!(&found, expected, "seed {seed} round {round}: {}", lines[at]);
            }
        }
        reap(bench);
    }
}

const SHAPES: [Shape; 8] = [
    Shape {
        priorities: 1,
        resources: 1,
        amount_max: 1_000,
        is_adverse: false,
        groups: 0,
    },
    Shape {
        priorities: 1,
        resources: 2,
        amount_max: 100,
        is_adverse: false,
        groups: 0,
    },
    Shape {
        priorities: 10,
        resources: 3,
        amount_max: 1_000,
        is_adverse: false,
        groups: 0,
    },
    Shape {
        priorities: 1_000_000,
        resources: 2,
        amount_max: 1_000,
        is_adverse: false,
        groups: 0,
    },
    Shape {
        priorities: 100,
        resources: 8,
        amount_max: 20,
        is_adverse: false,
        groups: 0,
    },
    Shape {
        priorities: 5,
        resources: 2,
        amount_max: 100,
        is_adverse: true,
        groups: 0,
    },
    Shape {
        priorities: 5,
        resources: 2,
        amount_max: 100,
        is_adverse: false,
        groups: 30,
    },
    Shape {
        priorities: 2,
        resources: 3,
        amount_max: 1_000,
        is_adverse: false,
        groups: 2_000,
    },
];

#[test]
fn what_the_index_finds_is_what_a_full_scan_finds() {
    for (seed, shape) in (1..).zip(&SHAPES) {
        compare(&Bench::embedded(), seed, shape, 11);
    }
}

#[test]
fn what_the_index_finds_is_what_a_full_scan_finds_with_many_writers() {
    for (seed, shape) in (1..).zip(&SHAPES).skip(2).step_by(2) {
        compare(&Bench::cluster_like(), seed, shape, 4);
    }
}

#[test]
fn who_takes_many_at_once_gets_each_once_in_their_order() {
    super::on_both_stores(|bench| {
        let lines: Vec<String> = (0..1_000)
            .map(|number| format!("TASK.ADD q 0 p ID t{number:03} NEEDS gb {}", number % 7 + 1))
            .collect();
        bench.run_all(&lines);
        reap(bench);
        let expected: Vec<String> = (0..1_000)
            .filter(|number| number % 7 < 5)
            .map(|number| format!("t{number:03}"))
            .collect();
        let peeked = bench.run("TASK.PEEK q COUNT 1000 HAVING gb 5");
        assert_eq!(ids(&peeked), expected);
        let taken = bench.run("TASK.TAKE q COUNT 1000 HAVING gb 5");
        assert_eq!(ids(&taken), expected);
        assert_eq!(
            ids(&bench.run("TASK.TAKE q COUNT 1000 HAVING gb 7")).len(),
            285
        );
    });
}
