//! Set commands on both kinds of store, with small sets and with large ones, which are stored in
//! rows. The expected replies come from Redis's source. The differential test goes further.

use std::collections::BTreeSet;

use quoin_engine::testing::{Bench, bulk};
use quoin_resp::reply::Reply;

mod algebra;
mod concurrency;
mod members;
mod random;

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

fn on_both_stores(test: impl Fn(&Bench)) {
    test(&Bench::embedded());
    test(&Bench::cluster_like());
}

/// The same with a set `s` in rows: it has a hundred more members `m0`, `m1`….
fn with_rows(test: impl Fn(&Bench)) {
    on_both_stores(|bench| {
        fill(bench, "s", 100);
        test(bench);
    });
}

fn fill(bench: &Bench, key: &str, count: usize) {
    let members: String = (0..count).map(|number| format!(" m{number}")).collect();
    bench.run(&format!("SADD {key}{members}"));
}

fn error(line: &str) -> Reply {
    Reply::Error(line.to_owned())
}

fn set(members: &[&str]) -> Reply {
    Reply::Set(members.iter().map(|member| bulk(member)).collect())
}

/// The members in a reply, in their order.
fn members(reply: Reply) -> BTreeSet<String> {
    let (Reply::Set(items) | Reply::Array(items)) = reply else {
        panic!("{reply:?}");
    };
    let count = items.len();
    let texts = items.into_iter().map(|item| match item {
        Reply::Bulk(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    });
    let distinct: BTreeSet<String> = texts.collect();
    assert_eq!(distinct.len(), count);
    distinct
}
