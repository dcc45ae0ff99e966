//! The checks of the data in a store.
//!
//! [`STORE_CHECKS`] check spaces of the layout. [`key_checks`] share one scan of all keys. A new
//! check is a function or a [`KeyCheck`] in one of the files here, and a row in one of the two.
//!
//! Rows that are compared are read at one moment (in one transaction), so that running servers
//! cause no false alarms. A repair reads again in its own transaction, so that it conflicts with
//! changes of what it depends on.

mod counters;
mod data;
mod delegation;
mod indexes;
mod keys;
mod overdue;
mod servers;
mod spaces;

use super::report::Line;
use super::target::{self, Answer, DoctorTarget, KeyCheck};
use quoin_store::{ReadTransaction, StoreError};

#[cfg(feature = "fdb")]
pub(super) use spaces::percentiles;

/// A check that scans by itself.
pub(super) struct StoreCheck {
    pub(super) name: &'static str,
    pub(super) run: for<'c> fn(&'c DoctorTarget<'c>, &'static str) -> Answer<'c, Line>,
}

/// The checks of spaces of the layout, in the order of their lines.
pub(super) const STORE_CHECKS: &[StoreCheck] = &[
    StoreCheck {
        name: "latency",
        run: |target, name| Box::pin(spaces::check_latency(target, name)),
    },
    StoreCheck {
        name: "rows",
        run: |target, name| Box::pin(spaces::check_rows(target, name)),
    },
    StoreCheck {
        name: "databases",
        run: |target, name| Box::pin(spaces::check_databases(target, name)),
    },
    StoreCheck {
        name: "trash",
        run: |target, name| Box::pin(spaces::check_trash(target, name)),
    },
    StoreCheck {
        name: "operations",
        run: |target, name| Box::pin(spaces::check_operations(target, name)),
    },
    StoreCheck {
        name: "messages",
        run: |target, name| Box::pin(spaces::check_messages(target, name)),
    },
    StoreCheck {
        name: "servers",
        run: |target, name| Box::pin(servers::check(target, name)),
    },
    StoreCheck {
        name: "delegation",
        run: |target, name| Box::pin(delegation::check(target, name)),
    },
    StoreCheck {
        name: "expiry",
        run: |target, name| Box::pin(keys::check_expiries(target, name)),
    },
    StoreCheck {
        name: "data",
        run: |target, name| Box::pin(data::check(target, name)),
    },
];

/// The checks of keys, in the order of their lines.
pub(super) fn key_checks(target: &DoctorTarget<'_>) -> Vec<Box<dyn KeyCheck>> {
    let mut checks: Vec<Box<dyn KeyCheck>> = vec![
        Box::<keys::Keys>::default(),
        Box::new(overdue::Overdue::of_queues()),
        Box::new(overdue::Overdue::of_hashes()),
    ];
    if target.is_deep {
        checks.push(Box::<counters::Counters>::default());
        checks.push(Box::<indexes::Indexes>::default());
        checks.push(Box::<indexes::MetaCopies>::default());
    }
    checks
}

/// Shows all keys to the checks.
pub(super) async fn scan_keys(
    target: &DoctorTarget<'_>,
    checks: &mut [Box<dyn KeyCheck>],
) -> Result<(), StoreError> {
    let mut begin = target::first_key(&target.layout);
    let mut count = 0;
    loop {
        let (page, next) = target
            .read(async |transaction: &dyn ReadTransaction| {
                target::read_key_page(transaction, &target.layout, &begin).await
            })
            .await?;
        for check in &mut *checks {
            check.check(target, &page).await?;
        }
        count += page.keys.len() as u64;
        target.progress.count("keys checked", count);
        match next {
            Some(next) => begin = next,
            None => return Ok(()),
        }
    }
}
