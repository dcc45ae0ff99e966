#![allow(missing_docs, dead_code, clippy::unimplemented)]
use super::archive::{ArchiveError, Archived};
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}
pub struct Restoration;
pub struct Replaying;
pub struct W {
    pub bytes: u64,
}
impl Restoration {
    pub fn begin(_: &std::path::Path) -> Result<Self, RestoreError> {
        unimplemented!()
    }
    pub fn write<I>(&self, _: u64, _: I, _: &mut dyn FnMut(W)) -> Result<(), RestoreError> {
        unimplemented!()
    }
    pub fn open(&self, _: u64) -> Result<Replaying, RestoreError> {
        unimplemented!()
    }
    pub fn finish(self, _: Replaying, _: u64) -> Result<(), RestoreError> {
        unimplemented!()
    }
}
impl Replaying {
    pub fn apply(&self, _: Archived<'_>) -> Result<(), RestoreError> {
        unimplemented!()
    }
}
