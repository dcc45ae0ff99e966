//! A user of the running server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;

use super::definition::Definition;

/// A user of the running server, which its clients hold.
///
/// A command of a user that may do everything costs one read of a flag.
#[derive(Debug)]
pub struct User {
    name: Bytes,
    is_open: AtomicBool,
    is_deleted: AtomicBool,
    definition: RwLock<Arc<Definition>>,
}

impl User {
    pub(super) fn new(name: Bytes, definition: Definition) -> Self {
        Self {
            name,
            is_open: AtomicBool::new(definition.is_open()),
            is_deleted: AtomicBool::new(false),
            definition: RwLock::new(Arc::new(definition)),
        }
    }

    /// A user that no client can be, for tests of what holds one.
    #[cfg(feature = "testing")]
    pub fn for_test() -> Arc<Self> {
        let name = Bytes::from_static(b"default");
        Arc::new(Self::new(name, Definition::unrestricted()))
    }

    /// Its name.
    pub fn name(&self) -> &Bytes {
        &self.name
    }

    /// Whether it may do everything.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Whether it was deleted. Its clients are disconnected.
    pub fn is_deleted(&self) -> bool {
        self.is_deleted.load(Ordering::Acquire)
    }

    /// What it may do at present.
    pub fn definition(&self) -> Arc<Definition> {
        let definition = self.definition.read();
        Arc::clone(&definition.unwrap_or_else(PoisonError::into_inner))
    }

    /// Gives it another definition. Returns the one that it had.
    pub(super) fn redefine(&self, definition: Definition) -> Arc<Definition> {
        let is_open = definition.is_open();
        let mut current = self
            .definition
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, Arc::new(definition));
        self.is_open.store(is_open, Ordering::Release);
        before
    }

    /// Deletes it: it may do nothing from now on.
    pub(super) fn delete(&self) {
        self.is_deleted.store(true, Ordering::Release);
        self.redefine(Definition::new(Default::default()));
    }
}
