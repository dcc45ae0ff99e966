//! Elements off a queue of any type, and back to where they were.

use super::PoppedElement;
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::TypeKind;
use crate::unit::context::WriteContext;
use quoin_store::StoreError;

impl WriteContext<'_> {
    /// Pops up to `count` elements from the queue itself.
    pub async fn take_elements(
        &self,
        key: &OpenKey,
        from_end: bool,
        count: usize,
    ) -> Result<Vec<PoppedElement>, StoreError> {
        match &key.meta.value_type.kind().queue {
            Some(queue) => (queue.take)(self, key, from_end, count).await,
            None => Ok(Vec::new()),
        }
    }

    /// Puts elements back that were popped in this order, in front of those that are there. An
    /// element that was put into a set again meanwhile stays as it is.
    pub async fn put_back(
        &self,
        key: &OpenKey,
        elements: Vec<PoppedElement>,
        from_end: bool,
    ) -> Result<(), CommandError> {
        self.invalidate(key);
        match &key.meta.value_type.kind().queue {
            Some(queue) => (queue.put_back)(self, key, elements, from_end).await,
            None => Ok(()),
        }
    }
}

/// The key of an element's row in its section, where it was popped from a list or priority queue.
pub(crate) fn row_key(section_prefix: &[u8], element: &PoppedElement) -> Vec<u8> {
    [section_prefix, &element.name[..]].concat()
}
