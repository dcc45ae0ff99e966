//! Expiries of a replay: each key expires later than its command says.

use bytes::Bytes;

use super::commands::is;

/// How much later, in milliseconds: about a thousand years, which no replay takes.
pub(in crate::import) const EXPIRY_SHIFT_MS: i64 = 1 << 45;

/// When a key expires.
#[derive(Clone, Copy)]
enum Unit {
    /// Seconds or milliseconds from now on.
    Seconds,
    Milliseconds,
    /// Seconds or milliseconds since the Unix epoch.
    AtSeconds,
    AtMilliseconds,
}

impl Unit {
    fn of_option(word: &[u8]) -> Option<Self> {
        [
            ("ex", Unit::Seconds),
            ("px", Unit::Milliseconds),
            ("exat", Unit::AtSeconds),
            ("pxat", Unit::AtMilliseconds),
        ]
        .into_iter()
        .find_map(|(name, unit)| is(word, name).then_some(unit))
    }

    /// The moment of the replay, as a text; `None` where the number makes no sense, which the server
    /// shall say.
    fn shifted(self, number: &[u8], now_ms: i64) -> Option<Bytes> {
        let number: i64 = std::str::from_utf8(number).ok()?.parse().ok()?;
        let ms = match self {
            Unit::Seconds | Unit::AtSeconds => number.checked_mul(1_000)?,
            Unit::Milliseconds | Unit::AtMilliseconds => number,
        };
        let at_ms = match self {
            Unit::Seconds | Unit::Milliseconds => ms.checked_add(now_ms)?,
            Unit::AtSeconds | Unit::AtMilliseconds => ms,
        };
        // A moment before the epoch is as much over as the epoch.
        let shifted = at_ms.max(0).checked_add(EXPIRY_SHIFT_MS)?;
        Some(shifted.to_string().into())
    }
}

/// Lets the key of a command expire later, if it is one that says when.
pub(super) fn shift(words: &mut Vec<Bytes>, now_ms: i64) -> Option<()> {
    let name = words.first()?.clone();
    let static_word = Bytes::from_static;
    for (other, unit) in [
        ("expire", Unit::Seconds),
        ("pexpire", Unit::Milliseconds),
        ("expireat", Unit::AtSeconds),
        ("pexpireat", Unit::AtMilliseconds),
    ] {
        if is(&name, other) {
            let at = unit.shifted(words.get(2)?, now_ms)?;
            *words.get_mut(2)? = at;
            *words.first_mut()? = static_word(b"PEXPIREAT");
            return Some(());
        }
    }
    for (other, unit) in [("setex", Unit::Seconds), ("psetex", Unit::Milliseconds)] {
        if is(&name, other) {
            let [_, key, number, value] = words.as_slice() else {
                return None;
            };
            let at = unit.shifted(number, now_ms)?;
            let set = static_word(b"SET");
            *words = vec![set, key.clone(), value.clone(), static_word(b"PXAT"), at];
            return Some(());
        }
    }
    let first_option = match &name {
        name if is(name, "set") => 3,
        name if is(name, "getex") => 2,
        name if is(name, "restore") => return shift_restored(words, now_ms),
        _ => return None,
    };
    let mut place = first_option;
    while let Some(unit) = words.get(place).map(|word| Unit::of_option(word)) {
        if let Some(unit) = unit {
            let at = unit.shifted(words.get(place + 1)?, now_ms)?;
            *words.get_mut(place + 1)? = at;
            *words.get_mut(place)? = static_word(b"PXAT");
            place += 1;
        }
        place += 1;
    }
    Some(())
}

/// `RESTORE key ttl payload [ABSTTL]`, where no time is 0.
fn shift_restored(words: &mut Vec<Bytes>, now_ms: i64) -> Option<()> {
    if words.get(2).is_none_or(|ttl| &ttl[..] == b"0") {
        return None;
    }
    let is_absolute = words.iter().skip(4).any(|word| is(word, "absttl"));
    let unit = match is_absolute {
        true => Unit::AtMilliseconds,
        false => Unit::Milliseconds,
    };
    let at = unit.shifted(words.get(2)?, now_ms)?;
    *words.get_mut(2)? = at;
    if !is_absolute {
        words.push(Bytes::from_static(b"ABSTTL"));
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shifted(line: &str) -> String {
        let mut words: Vec<Bytes> = line
            .split(' ')
            .map(|word| Bytes::copy_from_slice(word.as_bytes()))
            .collect();
        shift(&mut words, 5_000);
        let words: Vec<_> = words
            .iter()
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        words.join(" ")
    }

    #[test]
    fn keys_expire_later_by_the_same_time() {
        for (line, expected, ms) in [
            ("PEXPIREAT k 7", "PEXPIREAT k", 7),
            ("expireat k 7", "PEXPIREAT k", 7_000),
            ("EXPIRE k 7", "PEXPIREAT k", 12_000),
            ("PEXPIRE k 7", "PEXPIREAT k", 5_007),
            ("PEXPIREAT k -7", "PEXPIREAT k", 0),
            ("SETEX k 7 v", "SET k v PXAT", 12_000),
            ("PSETEX k 7 v", "SET k v PXAT", 5_007),
            ("SET k v PXAT 7", "SET k v PXAT", 7),
            ("SET k v NX EX 7", "SET k v NX PXAT", 12_000),
            ("GETEX k exat 7", "GETEX k PXAT", 7_000),
        ] {
            let at = EXPIRY_SHIFT_MS + ms;
            assert_eq!(shifted(line), format!("{expected} {at}"), "{line}");
        }
        let at = EXPIRY_SHIFT_MS + 7;
        let absolute = format!("RESTORE k {at} p REPLACE ABSTTL");
        assert_eq!(shifted("RESTORE k 7 p REPLACE ABSTTL"), absolute);
        let at = EXPIRY_SHIFT_MS + 5_007;
        assert_eq!(shifted("RESTORE k 7 p"), format!("RESTORE k {at} p ABSTTL"));
    }

    #[test]
    fn other_commands_stay_as_they_are() {
        for line in [
            "SET ex px",
            "SET k v",
            "SET k v KEEPTTL",
            "SET k v EX",
            "SET k v EX x",
            "PEXPIREAT k",
            "RESTORE k 0 p",
            "RPUSH k ex 7",
            "GETEX k PERSIST",
        ] {
            assert_eq!(shifted(line), line);
        }
    }
}
