//! What a batch reads of the log that its server has not heard yet.

use quoin_data::cluster::relay::News;
use quoin_data::keyspace::key::ClientKey;

/// What other servers have told up to the snapshot of an attempt, beyond what this server had heard when it began.
#[derive(Default)]
pub(super) enum Unheard {
    /// It was not read, so any key may have been filled.
    #[default]
    Anything,
    /// This was told.
    News(News),
}

impl Unheard {
    /// Whether a key that is quiet may have been filled after all.
    pub(super) fn concerns(&self, key: &ClientKey) -> bool {
        match self {
            Unheard::Anything => true,
            Unheard::News(news) => news.concerns(key),
        }
    }
}
