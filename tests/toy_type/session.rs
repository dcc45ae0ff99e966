//! A session with the bag commands, on the embedded store. tests/toy_type runs it as an example of the engine.
#![allow(missing_docs)]

use quoin_engine::testing::Bench;

fn main() {
    let bench = Bench::embedded();
    for line in ["BAG.ADD b x", "BAG.ADD b x", "BAG.LEN b", "TYPE b", "DEL b", "BAG.LEN b"] {
        println!("{line}: {:?}", bench.run(line));
    }
}
