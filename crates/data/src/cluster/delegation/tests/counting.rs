//! Elements count for the server whose clients get them.

use super::*;
use quoin_data::unit::flows::Flow;

/// What a transaction counts that runs `$body` with a context of `$environment`.
macro_rules! counted {
    ($bench:expr, $environment:expr, $context:ident, $body:expr) => {{
        let mut flows: Vec<Flow> = Vec::new();
        let transaction = transact!($bench, $environment, $context, {
            $body;
            flows = $context.signals.flows.take();
        });
        commit($bench, transaction).unwrap();
        let counts = flows.into_iter().map(|flow| flow.counts);
        counts
            .map(|counts| (counts.elements_in, counts.elements_out))
            .collect::<Vec<_>>()
    }};
}

#[test]
fn a_grant_counts_when_it_is_popped_and_not_before() {
    for (push, value_type) in [
        ("RPUSH q a b c d", ValueType::List),
        ("ZADD q 1 a 2 b 3 c 4 d", ValueType::SortedSet),
        ("PQ.PUSH q 1 a 2 b 3 c 4 d", ValueType::PriorityQueue),
    ] {
        let bench = Bench::cluster_like();
        bench.run(push);
        let asker = Asker::new(&bench);
        let demand = demand(value_type, false, 3);
        let call = asker.ask(demand);
        let name = Bytes::from_static(b"q");
        let environment = bench.executor.environment();
        let granted = counted!(&bench, environment, context, {
            let key = context.find(&name, value_type).await.unwrap().unwrap();
            let granted = context.grant_requests(&key, false, || true).await;
            assert_eq!(granted.unwrap().elements, 3);
        });
        assert!(granted.is_empty());
        // Two are popped, and the third returns.
        let held = HeldGrants::default();
        let namespaces = NamespaceCache::default();
        let popped = counted!(&bench, &asker.environment, context, {
            let context = WriteContext::new(
                context.transaction,
                &asker.environment,
                &namespaces,
                context.signals,
                bench.clock.now_ms(),
                0,
            )
            .with_grants(&held)
            .popping_grants();
            assert!(context.fetch_grant(&call, &held).await.unwrap());
            let key = context.find(&name, value_type).await.unwrap().unwrap();
            let popped = context.pop_elements(&key, false, 2).await.unwrap();
            assert_eq!(popped.len(), 2);
            context.return_rest().await.unwrap();
            context.count_rank_changes().await.unwrap();
        });
        assert_eq!(popped, [(0, 2)]);
    }
}
