//! A script: its text, its name, and what its first line says of it.

use bytes::Bytes;
use sha1::{Digest, Sha1};

/// What the first line of a script (`#!lua flags=…`) says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScriptFlags {
    /// There is no such line: the script may do what scripts of Redis before 7.0 could.
    pub is_plain: bool,
    /// `no-writes`: it only reads.
    pub no_writes: bool,
    /// `allow-oom`: it may add data where there is as much as `maxmemory` allows.
    pub allow_oom: bool,
    /// `atomic`, which Redis does not have: where it fails, nothing of it stays.
    pub is_atomic: bool,
}

impl ScriptFlags {
    /// Whether it is refused as commands that add data are, where there is as much as `maxmemory` allows
    /// (Redis: `scriptFlagsToCmdFlags`). What a plain script calls is refused instead.
    pub fn need_room(self) -> bool {
        !self.is_plain && !self.allow_oom && !self.no_writes
    }
}

/// The flags that mean nothing here: there is no replica that could be stale, and no Redis Cluster.
const WITHOUT_EFFECT: &[&[u8]] = &[b"allow-stale", b"no-cluster", b"allow-cross-slot-keys"];

/// A script that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// SHA-1 of the whole text in hexadecimal: its name.
    pub sha: String,
    /// The whole text.
    pub text: Bytes,
    /// What its first line says.
    pub flags: ScriptFlags,
    /// Bytes of the first line that are no Lua. The line's end stays, so lines keep their numbers.
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
    /// Redis's error line where that is not as it should be (`evalExtractShebangFlags`).
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

    /// What Lua is given.
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
