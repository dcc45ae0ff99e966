//! MIGRATE: keys that leave for another server.

use bytes::Bytes;

use crate::error::CommandError;
use quoin_base::events::EventClasses;

use crate::unit::context::{ReadContext, WriteContext};

/// A key as it is sent to another server.
#[derive(Debug, Clone)]
pub struct Departure {
    /// Its name.
    pub name: Bytes,
    /// Its value in Redis's serialization.
    pub payload: Bytes,
    /// When it expires.
    pub expire_at_ms: Option<i64>,
    /// What tells whether it has changed since.
    fingerprint: Option<Bytes>,
}

impl ReadContext<'_> {
    /// A key to be sent, if there is one.
    ///
    /// # Errors
    /// See [`Self::dump`].
    pub async fn departure(&self, name: &Bytes) -> Result<Option<Departure>, CommandError> {
        let Some(key) = self.find_any(name).await? else {
            return Ok(None);
        };
        Ok(Some(Departure {
            name: name.clone(),
            payload: self.dump(&key).await?,
            expire_at_ms: key.meta.expire_at_ms,
            fingerprint: self.fingerprint(name).await?,
        }))
    }
}

impl WriteContext<'_> {
    /// Removes a key that the other server has, unless it has changed since it was read. Returns
    /// whether it is gone.
    pub async fn depart(&self, departure: &Departure) -> Result<bool, CommandError> {
        let name = &departure.name;
        let Some(key) = self.find_any(name).await? else {
            // It has expired since, or somebody has removed what is on the other server now.
            let expires = departure.expire_at_ms;
            return Ok(expires.is_some_and(|at_ms| at_ms <= self.now_ms));
        };
        // Elements that other servers have popped and not delivered yet are not in the payload. If such
        // a server dies they return to the key.
        if self.fingerprint(name).await? != departure.fingerprint || self.has_grants(&key).await? {
            return Ok(false);
        }
        self.remove(&key);
        self.notify(EventClasses::GENERIC, "del", name);
        Ok(true)
    }
}
