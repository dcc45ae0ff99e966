//! Whether a key exists, given its metadata and its length. This is the only place that defines the meaning of a key
//! without elements.

use crate::keyspace::kind::TypeKind;
use quoin_layout::Meta;
use quoin_store::{Capabilities, Isolation, StoreError};

use crate::unit::context::ReadContext;

/// The state of a key that has metadata. (An expired key does not exist in any case.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It exists.
    Exists,
    /// It ceased to exist with its last element, and its metadata was kept for the next push (*retained metadata*, see
    /// [`crate::keyspace`]). Clients do not see it.
    Retained,
    /// It must be removed in the transaction that removes its last element. It can only remain if the count is wrong,
    /// and then clients see it.
    Emptied,
}

/// The state of a key with this metadata and length, on a store with these capabilities. A value in metadata is removed
/// in the transaction that removes its last element, so it always exists.
pub fn presence(meta: &Meta, length: i64, capabilities: &Capabilities) -> Presence {
    let is_small = meta.inline.is_some();
    let is_kept = meta.is_kept || meta.value_type.kind().exists_when_empty;
    if length != 0 || is_small || is_kept {
        Presence::Exists
    } else if capabilities.has_other_writers && meta.expire_at_ms.is_none() {
        Presence::Retained
    } else {
        Presence::Emptied
    }
}

impl ReadContext<'_> {
    /// The state of a key with this metadata and length.
    pub(crate) fn presence(&self, meta: &Meta, length: i64) -> Presence {
        presence(meta, length, &self.environment.capabilities)
    }

    /// Whether this metadata is retained if its length is 0.
    pub(crate) fn may_be_retained(&self, meta: &Meta) -> bool {
        self.presence(meta, 0) == Presence::Retained
    }

    /// Whether this metadata is retained. Reads the length only if needed.
    pub(crate) async fn is_retained(
        &self,
        meta_key: &[u8],
        meta: &Meta,
        isolation: Isolation,
    ) -> Result<bool, StoreError> {
        Ok(self.may_be_retained(meta) && {
            let length = self.length_at(meta_key, isolation).await?;
            self.presence(meta, length) == Presence::Retained
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::testing::environment;
    use crate::unit::context::NamespaceCache;
    use crate::unit::context::WriteContext;
    use crate::unit::signals::Signals;
    use quoin_engine::testing::{Bench, bulk, bulks};
    use quoin_layout::{Id, ValueType};
    use quoin_resp::reply::Reply;

    fn on_both(test: impl Fn(&Bench)) {
        test(&Bench::embedded());
        test(&Bench::cluster_like());
    }

    /// Executes and commits changes in a context of database 0.
    fn write<T>(bench: &Bench, change: impl AsyncFn(&WriteContext<'_>) -> T) -> T {
        let environment = &environment(bench);
        let transaction = bench.store.begin_write().unwrap();
        let (namespaces, signals) = (NamespaceCache::default(), Signals::default());
        let context = WriteContext::new(&*transaction, environment, &namespaces, &signals, 0, 0);
        let changed = bench.block_on(change(&context));
        bench.block_on(transaction.commit()).unwrap();
        changed
    }

    fn create(bench: &Bench, name: &'static str) {
        let name = Bytes::from_static(name.as_bytes());
        write(bench, async |context: &WriteContext<'_>| {
            let created = context.create(&name, ValueType::Stream, None).await;
            context.remove_if_empty(&created.unwrap()).await.unwrap();
        });
    }

    #[test]
    fn what_no_elements_mean_depends_on_type_expiry_and_store() {
        let meta = |value_type, expire_at_ms| Meta {
            value_type,
            data: Id {
                instance: 1,
                sequence: 1,
            },
            expire_at_ms,
            long_name: None,
            inline: None,
            rank_levels: 0,
            fields_expire: false,
            is_kept: false,
        };
        let embedded = Bench::embedded().store.capabilities();
        let cluster = Bench::cluster_like().store.capabilities();
        for capabilities in [&embedded, &cluster] {
            for value_type in ValueType::ALL {
                for expire_at_ms in [None, Some(1)] {
                    let meta = meta(*value_type, expire_at_ms);
                    assert_eq!(presence(&meta, 1, capabilities), Presence::Exists);
                    let expected = if matches!(value_type, ValueType::Stream | ValueType::String) {
                        Presence::Exists
                    } else if expire_at_ms.is_none() && capabilities.has_other_writers {
                        Presence::Retained
                    } else {
                        Presence::Emptied
                    };
                    assert_eq!(presence(&meta, 0, capabilities), expected);
                    let kept = Meta {
                        is_kept: true,
                        ..meta
                    };
                    assert_eq!(presence(&kept, 0, capabilities), Presence::Exists);
                }
            }
        }
    }

    #[test]
    fn a_key_of_a_type_that_exists_when_empty_is_seen() {
        on_both(|bench| {
            create(bench, "key");
            assert_eq!(bench.run("EXISTS key"), Reply::Integer(1));
            assert_eq!(bench.run("TYPE key"), Reply::Simple("stream"));
            assert_eq!(bench.run("KEYS *"), bulks(&["key"]));
            assert_eq!(bench.run("RANDOMKEY"), bulk("key"));
            assert_eq!(bench.run("DBSIZE"), Reply::Integer(1));
            let scanned = Reply::Array(vec![bulk("0"), bulks(&["key"])]);
            assert_eq!(bench.run("SCAN 0 TYPE stream"), scanned);
            assert_eq!(bench.run("OBJECT ENCODING key"), bulk("stream"));
            assert!(matches!(bench.run("MEMORY USAGE key"), Reply::Integer(1..)));
            assert!(matches!(bench.run("SORT key"), Reply::Error(_)));
            let name = Bytes::from_static(b"key");
            write(bench, async |context: &WriteContext<'_>| {
                assert!(context.fingerprint(&name).await.unwrap().is_some());
            });
        });
    }

    #[test]
    fn a_key_of_a_type_that_exists_when_empty_stays_until_it_is_deleted() {
        on_both(|bench| {
            create(bench, "key");
            // Retained metadata would allow another type.
            assert!(matches!(bench.run("RPUSH key a"), Reply::Error(_)));
            write(bench, async |context: &WriteContext<'_>| {
                let (_, retained) = context.retained(0, 10).await.unwrap();
                assert_eq!(retained, []);
            });
            assert_eq!(bench.run("DEL key"), Reply::Integer(1));
            assert_eq!(bench.run("EXISTS key"), Reply::Integer(0));
        });
    }

    #[test]
    fn an_empty_key_may_get_another_name() {
        on_both(|bench| {
            create(bench, "key");
            bench.run("RENAME key other");
            assert_eq!(bench.run("COPY other copy"), Reply::Integer(1));
            assert_eq!(bench.run("EXISTS key other copy"), Reply::Integer(2));
        });
    }
}
