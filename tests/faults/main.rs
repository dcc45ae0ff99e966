//! Commands through the executor on stores that fail on purpose.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub
)]

mod bench;
mod exactly_once;
mod giving_up;
mod midway;
mod sizes;
