//! Backups as an operator makes and uses them: `quoin backup` and `quoin restore`, with servers
//! under load, after kills, with damaged files, and to a moment between backups. Everything that
//! was restored is compared row by row.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

#[path = "support/doctor.rs"]
mod doctor;
#[path = "backup/folders.rs"]
mod folders;
#[path = "support/server.rs"]
mod server;

#[path = "backup/following.rs"]
mod following;
#[path = "backup/logging_in.rs"]
mod logging_in;
#[path = "backup/making.rs"]
mod making;
#[path = "backup/moments.rs"]
mod moments;
#[path = "backup/restoring.rs"]
mod restoring;
#[path = "backup/shipping.rs"]
mod shipping;
