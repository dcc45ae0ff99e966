//! What a batch reads of the log that its server has not read yet.

use quoin_data::cluster::relay::News;
use quoin_data::keyspace::key::ClientKey;

/// What other servers have reported up to the snapshot of an attempt, beyond what this server knew
/// when the attempt began.
#[derive(Default)]
pub(super) enum Unread {
    /// The log was not read, so any key may have been filled.
    #[default]
    Anything,
    /// These reports.
    News(News),
}

impl Unread {
    /// Whether a quiet key may have been filled after all.
    pub(super) fn concerns(&self, key: &ClientKey) -> bool {
        match self {
            Unread::Anything => true,
            Unread::News(news) => news.concerns(key),
        }
    }
}
