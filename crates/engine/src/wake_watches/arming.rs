//! Arms watches together. Each push to an awaited key fires its watch. On a cluster, one transaction for each of
//! these would exceed the number of transactions that push. Rows requested during a transaction share the next one.

use std::cell::RefCell;
use std::convert::Infallible;

use tokio::sync::{Notify, oneshot};

use quoin_store::{Store, StoreError, Watched};

/// How many watches one transaction arms.
const ARMED_TOGETHER_MAX: usize = 256;

/// A row to read and watch.
struct Asked {
    row: Vec<u8>,
    respond: oneshot::Sender<Result<Watched, StoreError>>,
}

/// Rows to watch.
#[derive(Default)]
pub(super) struct Arming {
    asked: RefCell<Vec<Asked>>,
    /// Notified when there are such rows.
    is_asked: Notify,
}

impl Arming {
    /// Reads a row and watches it.
    pub(super) async fn arm(&self, row: &[u8]) -> Result<Watched, StoreError> {
        let (respond, armed) = oneshot::channel();
        self.asked.borrow_mut().push(Asked {
            row: row.to_vec(),
            respond,
        });
        self.is_asked.notify_one();
        // Without an answer, the server is stopping.
        armed.await.unwrap_or(Err(StoreError::Conflict))
    }

    /// Arms the requested watches.
    pub(super) async fn serve(&self, store: &dyn Store) -> Infallible {
        loop {
            self.is_asked.notified().await;
            // Let other watches that fired at the same time join.
            tokio::task::yield_now().await;
            let asked = {
                let mut asked = self.asked.borrow_mut();
                let count = asked.len().min(ARMED_TOGETHER_MAX);
                let rest = asked.split_off(count);
                std::mem::replace(&mut *asked, rest)
            };
            if !self.asked.borrow().is_empty() {
                self.is_asked.notify_one();
            }
            arm_together(store, asked).await;
        }
    }
}

async fn arm_together(store: &dyn Store, asked: Vec<Asked>) {
    let rows: Vec<&[u8]> = asked.iter().map(|one| one.row.as_slice()).collect();
    match store.watch_each(&rows).await {
        Ok(watched) => {
            for (one, watched) in asked.into_iter().zip(watched) {
                // The requester may be gone.
                let _ = one.respond.send(Ok(watched));
            }
        }
        Err(error) if error.is_about_rows() && asked.len() > 1 => {
            // One row must not make the others fail.
            for one in asked {
                let _ = one.respond.send(store.watch(&one.row).await);
            }
        }
        Err(error) => {
            for one in asked {
                let _ = one.respond.send(Err(error.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;
    use crate::testing::Bench;
    use quoin_store::faults::{Fault, FaultPoint};

    /// Arms watches of rows concurrently, and returns the rows' values.
    fn arm(bench: &Bench, rows: &[&[u8]]) -> Vec<Result<Option<Vec<u8>>, StoreError>> {
        let arming = Arming::default();
        let armed = bench.block_on(async {
            let armed = join_all(rows.iter().map(|row| arming.arm(row)));
            tokio::select! {
                never = arming.serve(&*bench.store) => match never {},
                armed = armed => armed,
            }
        });
        let value = |watched: Watched| watched.value.map(|value| value.to_vec());
        armed.into_iter().map(|one| one.map(value)).collect()
    }

    #[test]
    fn each_that_asks_is_given_its_own_row() {
        let bench = Bench::cluster_like();
        let names: Vec<Vec<u8>> = (0..2 * ARMED_TOGETHER_MAX + 1)
            .map(|number| format!("row {number}").into_bytes())
            .collect();
        let transaction = bench.store.begin_write().unwrap();
        for name in &names {
            transaction.set(name, name);
        }
        bench.block_on(transaction.commit()).unwrap();
        let rows: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        let armed = arm(&bench, &rows);
        let values: Vec<_> = armed.into_iter().map(|one| one.unwrap().unwrap()).collect();
        assert_eq!(values, names);
    }

    #[test]
    fn all_that_ask_hear_of_a_failure() {
        let (bench, faulty) = Bench::faulty(1);
        faulty.script(FaultPoint::Begin, [Some(Fault::Unavailable)]);
        let armed = arm(&bench, &[b"a", b"b"]);
        assert!(matches!(armed.as_slice(), [Err(_), Err(_)]));
        assert!(matches!(arm(&bench, &[b"a"]).as_slice(), [Ok(None)]));
    }
}
