//! A script: its text, its name, the flags in its first line, and the cache of recent texts.

use std::sync::Arc;

use bytes::Bytes;
use sha1::{Digest, Sha1};

/// The flags in the first line of a script (`#!lua flags=…`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScriptFlags {
    /// Whether there is no such line. The script may then do what scripts of Redis before 7.0
    /// could.
    pub is_plain: bool,
    /// `no-writes`: it only reads.
    pub no_writes: bool,
    /// `allow-oom`: it may add data although `maxmemory` is reached.
    pub allow_oom: bool,
    /// `atomic`, which Redis does not have: if the script fails, all its writes are undone.
    pub is_atomic: bool,
}

impl ScriptFlags {
    /// Whether it is refused like commands that add data when `maxmemory` is reached (Redis:
    /// `scriptFlagsToCmdFlags`). For a plain script, the commands that it calls are refused instead.
    pub fn need_room(self) -> bool {
        !self.is_plain && !self.allow_oom && !self.no_writes
    }
}

/// Flags without effect here, because there is no replica that could be stale, and no Redis
/// Cluster.
const WITHOUT_EFFECT: &[&[u8]] = &[b"allow-stale", b"no-cluster", b"allow-cross-slot-keys"];

/// A script that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// SHA-1 of the whole text in hexadecimal: its name.
    pub sha: String,
    /// The whole text.
    pub text: Bytes,
    /// The flags in its first line.
    pub flags: ScriptFlags,
    /// Bytes of the first line that are not Lua. The line break stays, so that line numbers do not
    /// change.
    shebang_bytes: usize,
}

/// SHA-1 in hexadecimal.
pub fn sha1_hex(bytes: &[u8]) -> String {
    let digest = Sha1::digest(bytes);
    let mut text = String::with_capacity(2 * digest.len());
    for half in digest.iter().flat_map(|byte| [byte >> 4, byte & 0x0f]) {
        text.extend(char::from_digit(half.into(), 16));
    }
    text
}

impl Script {
    /// Reads a script's first line.
    ///
    /// # Errors
    /// Redis's error line if the line is invalid (`evalExtractShebangFlags`).
    pub fn parse(text: Bytes) -> Result<Self, String> {
        let (flags, shebang_bytes) = parse_shebang(&text)?;
        Ok(Self {
            sha: sha1_hex(&text),
            text,
            flags,
            shebang_bytes,
        })
    }

    /// Whether a text's first line says that it only reads.
    pub fn declares_no_writes(text: &[u8]) -> bool {
        text.starts_with(b"#!") && parse_shebang(text).is_ok_and(|(flags, _)| flags.no_writes)
    }

    /// The text that Lua gets.
    pub(super) fn source(&self) -> &[u8] {
        self.text.get(self.shebang_bytes..).unwrap_or_default()
    }
}

fn parse_shebang(text: &[u8]) -> Result<(ScriptFlags, usize), String> {
    let mut flags = ScriptFlags {
        is_plain: true,
        ..ScriptFlags::default()
    };
    if !text.starts_with(b"#!") {
        return Ok((flags, 0));
    }
    let refuse = |reason: &str, what: &[u8]| {
        let what = String::from_utf8_lossy(what);
        format!("ERR {reason}{what}")
    };
    let Some(length) = text.iter().position(|byte| *byte == b'\n') else {
        return Err(refuse("Invalid script shebang", b""));
    };
    let line = text.get(..length).unwrap_or_default();
    let mut words = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let engine = words.next().unwrap_or_default();
    if engine != b"#!lua" {
        return Err(refuse("Unexpected engine in script shebang: ", engine));
    }
    flags.is_plain = false;
    for word in words {
        let Some(names) = word.strip_prefix(b"flags=") else {
            return Err(refuse("Unknown lua shebang option: ", word));
        };
        if names.is_empty() {
            continue;
        }
        for name in names.split(|byte| *byte == b',') {
            match name {
                b"no-writes" => flags.no_writes = true,
                b"allow-oom" => flags.allow_oom = true,
                b"atomic" => flags.is_atomic = true,
                name if WITHOUT_EFFECT.contains(&name) => {}
                name => return Err(refuse("Unexpected flag in script shebang: ", name)),
            }
        }
    }
    Ok((flags, length))
}

/// Scripts that are remembered, each in the slot that its text chooses.
const SLOTS: usize = 64;

/// Maximum length of a remembered text, in bytes.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// Number of bytes at the end of a text that determine its slot, together with its length.
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
    /// Where it is stored, and the flush number of that, if known.
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

    /// The script with this text. Remembers it unless it is long.
    ///
    /// # Errors
    /// Redis's error line if its first line is invalid.
    pub(super) fn parse(&mut self, text: &Bytes) -> Result<Arc<Script>, String> {
        if text.len() > TEXT_BYTES_MAX {
            return Script::parse(text.clone()).map(Arc::new);
        }
        // A copy, so that it does not keep other data of the client in memory.
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

    /// Where this script is stored, if known for flush number `epoch`.
    pub(super) fn kept(&self, epoch: u64, script: &Arc<Script>) -> Option<Kept> {
        let slot = self.slots.get(slot_of(&script.text))?.as_ref()?;
        match slot.kept {
            Some((at, kept)) if at == epoch && Arc::ptr_eq(&slot.script, script) => Some(kept),
            _ => None,
        }
    }

    /// Records where this script is stored, as of flush number `epoch`.
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
        // Another script with the same text replaces it.
        assert!(!Arc::ptr_eq(&recent.parse(&text).unwrap(), &script));
        assert_eq!(recent.kept(3, &script), None);
    }
}
