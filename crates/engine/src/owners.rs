//! What the engine asks of the links to other servers.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;

use super::call::Call;
use quoin_resp::reply::Reply;

/// The other servers, and which keys they own.
pub trait Owners: Send + Sync {
    /// Returns the other live server that owns all of these keys and accepts commands now. `None`
    /// if this server owns one of them, or if they have several owners.
    fn owner_of(&self, keys: &mut dyn Iterator<Item = &Bytes>) -> Option<u64>;

    /// Has an owner run calls as one submission, which ends once its replies have `reply_bytes_max`
    /// bytes. Copies what it needs from the calls before it returns the future.
    fn forward(&self, owner: u64, calls: &[Call], reply_bytes_max: usize) -> ForwardedFuture;
}

/// The future of [`Owners::forward`].
pub type ForwardedFuture = Pin<Box<dyn Future<Output = Forwarded> + Send>>;

/// What became of forwarded calls.
#[derive(Debug)]
pub enum Forwarded {
    /// None of them ran.
    NotRun,
    /// The first of them ran, at least one, and are durable.
    Ran(Vec<Reply>),
    /// The owner was lost and may have begun to run them.
    Unknown,
}
