//! Putting back tasks whose leases or delays have ended.

use bytes::Bytes;

use super::*;
use crate::taskqueue::TaskQueueMut;
use crate::testing::environment;
use crate::unit::context::{NamespaceCache, WriteContext};
use crate::unit::signals::Signals;
use quoin_base::clock::Clock;
use quoin_layout::ValueType;

#[test]
fn a_take_puts_back_one_task_however_large_it_is() {
    let bench = Bench::cluster_like();
    let payload = "x".repeat(80_000);
    bench.run(&format!("TASK.ADD q 1 {payload}"));
    bench.run("TASK.TAKE q LEASE 1000");
    bench.clock.advance_ms(2_000);
    let transaction = bench.store.begin_write().unwrap();
    let namespaces = NamespaceCache::default();
    let signals = Signals::default();
    let environment = &environment(&bench);
    let now_ms = bench.clock.now_ms();
    let context = WriteContext::new(&*transaction, environment, &namespaces, &signals, now_ms, 0);
    let has_more = bench.block_on(async {
        let name = Bytes::from("q");
        let key = context.find(&name, ValueType::TaskQueue).await.unwrap();
        let queue = TaskQueueMut::open(&context, key.as_ref().unwrap());
        queue.put_back_due(10, 1).await.unwrap()
    });
    assert!(!has_more);
    bench.block_on(transaction.commit()).unwrap();
    assert_eq!(bench.run("TASK.LEN q LEASED"), Reply::Integer(0));
}
