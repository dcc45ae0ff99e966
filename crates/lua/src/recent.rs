//! Scripts whose text came lately: an EVAL that repeats one computes no name and reads no first line.

use std::sync::Arc;

use bytes::Bytes;

use super::script::Script;

/// Scripts that are remembered, each in the slot that its text chooses.
const SLOTS: usize = 64;
/// Bytes of the longest text that is remembered.
const TEXT_BYTES_MAX: usize = 16 * 1024;
/// Bytes at the end of a text that choose its slot, beside its length.
const HASHED_BYTES: usize = 16;

/// Where EVALSHA finds a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// On this server, while it runs.
    OnServer,
    /// In the store, so on every server, and after a restart.
    InStore,
}

/// See the module's comment.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// Empty until something is remembered.
    slots: Vec<Option<Slot>>,
}

#[derive(Debug, Clone)]
struct Slot {
    script: Arc<Script>,
    /// Where it was kept, and at which count of flushes, if it is known.
    kept: Option<(u64, Kept)>,
}

fn slot_of(text: &[u8]) -> usize {
    let from = text.len().saturating_sub(HASHED_BYTES);
    let hashed = text.get(from..).unwrap_or_default().iter();
    let hash = hashed.fold(text.len(), |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(usize::from(*byte))
    });
    hash % SLOTS
}

impl Recent {
    /// The script with this text.
    pub(super) fn find(&self, text: &[u8]) -> Option<Arc<Script>> {
        let slot = self.slots.get(slot_of(text))?.as_ref()?;
        (slot.script.text == text).then(|| Arc::clone(&slot.script))
    }

    /// A script with this text, which is remembered unless it is long.
    ///
    /// # Errors
    /// Redis's error line where its first line is not as it should be.
    pub(super) fn parse(&mut self, text: &Bytes) -> Result<Arc<Script>, String> {
        if text.len() > TEXT_BYTES_MAX {
            return Script::parse(text.clone()).map(Arc::new);
        }
        // A copy, so that it does not keep what else the client has sent.
        let script = Arc::new(Script::parse(Bytes::copy_from_slice(text))?);
        self.slots.resize(SLOTS, None);
        if let Some(slot) = self.slots.get_mut(slot_of(text)) {
            *slot = Some(Slot {
                script: Arc::clone(&script),
                kept: None,
            });
        }
        Ok(script)
    }

    /// Where this very script is known to have been kept at that count of flushes.
    pub(super) fn kept(&self, epoch: u64, script: &Arc<Script>) -> Option<Kept> {
        let slot = self.slots.get(slot_of(&script.text))?.as_ref()?;
        match slot.kept {
            Some((at, kept)) if at == epoch && Arc::ptr_eq(&slot.script, script) => Some(kept),
            _ => None,
        }
    }

    /// This script was kept there at that count of flushes.
    pub(super) fn note_kept(&mut self, epoch: u64, script: &Arc<Script>, kept: Kept) {
        let slot = self.slots.get_mut(slot_of(&script.text));
        if let Some(slot) = slot.and_then(Option::as_mut)
            && Arc::ptr_eq(&slot.script, script)
        {
            slot.kept = Some((epoch, kept));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_found_by_its_whole_text() {
        let mut recent = Recent::default();
        let texts: Vec<Bytes> = (0..300)
            .map(|number| format!("return {number} -- the same end of all").into())
            .collect();
        for text in &texts {
            let script = recent.parse(text).unwrap();
            let found = recent.find(text).unwrap();
            assert!(Arc::ptr_eq(&script, &found));
            assert_eq!(found.text, *text);
        }
        let found = texts
            .iter()
            .filter_map(|text| Some((text, recent.find(text)?)));
        assert!(found.clone().count() > 0);
        assert!(found.into_iter().all(|(text, script)| script.text == *text));
        let long = Bytes::from(vec![b' '; TEXT_BYTES_MAX + 1]);
        assert!(recent.parse(&long).is_ok() && recent.find(&long).is_none());
        assert!(recent.parse(&Bytes::from_static(b"#!py\n")).is_err());
    }

    #[test]
    fn where_a_script_is_kept_is_known_until_a_flush() {
        let mut recent = Recent::default();
        let text = Bytes::from_static(b"return 1");
        let script = recent.parse(&text).unwrap();
        assert_eq!(recent.kept(3, &script), None);
        recent.note_kept(3, &script, Kept::InStore);
        assert_eq!(recent.kept(3, &script), Some(Kept::InStore));
        assert_eq!(recent.kept(4, &script), None);
        let other = Arc::new(Script::parse(text.clone()).unwrap());
        assert_eq!(recent.kept(3, &other), None);
        // Another script with the same text takes its place.
        assert!(!Arc::ptr_eq(&recent.parse(&text).unwrap(), &script));
        assert_eq!(recent.kept(3, &script), None);
    }
}
