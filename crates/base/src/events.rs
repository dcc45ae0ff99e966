//! Classes of keyspace events: which changes of keys are published to clients
//! (`notify-keyspace-events`).

use std::sync::atomic::{AtomicU32, Ordering};

/// A set of classes, as Redis's letters name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventClasses(u32);

macro_rules! classes {
    ($($(#[$document:meta])* $name:ident = $bit:literal, $letter:literal;)*) => {
        impl EventClasses {
            $($(#[$document])* pub const $name: EventClasses = EventClasses(1 << $bit);)*

            const LETTERS: &'static [(EventClasses, char)] = &[$((EventClasses::$name, $letter)),*];
        }
    };
}

// In Redis's order.
classes! {
    /// Commands that know any type: DEL, EXPIRE, RENAME.
    GENERIC = 2, 'g';
    /// Strings.
    STRING = 3, '$';
    /// Lists.
    LIST = 4, 'l';
    /// Sets.
    SET = 5, 's';
    /// Hashes.
    HASH = 6, 'h';
    /// Sorted sets.
    SORTED_SET = 7, 'z';
    /// Keys that were removed because they expired.
    EXPIRED = 8, 'x';
    /// Keys that were removed for lack of memory, which never happens here.
    EVICTED = 9, 'e';
    /// Streams.
    STREAM = 10, 't';
    /// Redis's modules.
    MODULE = 13, 'd';
    /// Keys that were created. Not part of `A`.
    NEW = 14, 'n';
    /// Events are published in channels named after keys.
    KEYSPACE = 0, 'K';
    /// Events are published in channels named after events.
    KEYEVENT = 1, 'E';
    /// Reads of keys that do not exist. Not part of `A`.
    KEY_MISS = 11, 'm';
}

impl EventClasses {
    /// No class.
    pub const NONE: EventClasses = EventClasses(0);

    /// The classes of the letter `A`.
    pub const ALL: EventClasses = EventClasses::GENERIC
        .and(EventClasses::STRING)
        .and(EventClasses::LIST)
        .and(EventClasses::SET)
        .and(EventClasses::HASH)
        .and(EventClasses::SORTED_SET)
        .and(EventClasses::EXPIRED)
        .and(EventClasses::EVICTED)
        .and(EventClasses::STREAM)
        .and(EventClasses::MODULE);

    /// Both sets together.
    pub const fn and(self, other: EventClasses) -> EventClasses {
        EventClasses(self.0 | other.0)
    }

    /// Whether this contains all of `other`.
    pub const fn contains(self, other: EventClasses) -> bool {
        self.0 & other.0 == other.0
    }

    /// Reads Redis's letters. `None` if a letter is unknown.
    pub fn parse(letters: &str) -> Option<Self> {
        letters
            .chars()
            .try_fold(EventClasses::NONE, |classes, given| {
                let class = match given {
                    'A' => EventClasses::ALL,
                    _ => Self::LETTERS.iter().find(|(_, letter)| *letter == given)?.0,
                };
                Some(classes.and(class))
            })
    }

    /// The letters in Redis's order; `A` hides `n`, as in Redis 7.2.
    pub fn letters(self) -> String {
        let is_all = self.contains(EventClasses::ALL);
        let hidden = EventClasses::ALL.and(EventClasses::NEW);
        let shown = Self::LETTERS
            .iter()
            .filter(|(class, _)| self.contains(*class) && !(is_all && hidden.contains(*class)))
            .map(|(_, letter)| *letter);
        is_all.then_some('A').into_iter().chain(shown).collect()
    }
}

/// The classes that a running server publishes. CONFIG SET changes them.
#[derive(Debug, Default)]
pub struct EventSwitch(AtomicU32);

impl EventSwitch {
    /// The classes now.
    pub fn classes(&self) -> EventClasses {
        EventClasses(self.0.load(Ordering::Relaxed))
    }

    /// Publishes these classes from now on.
    pub fn set(&self, classes: EventClasses) {
        self.0.store(classes.0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_printed_in_the_order_of_redis() {
        let events = |given| EventClasses::parse(given).map(EventClasses::letters);
        assert_eq!(events("").as_deref(), Some(""));
        assert_eq!(events("KEA").as_deref(), Some("AKE"));
        assert_eq!(events("nKA").as_deref(), Some("AK"));
        assert_eq!(events("KEg$lxmdn").as_deref(), Some("g$lxdnKEm"));
        assert_eq!(events("g$lshzxetdEK").as_deref(), Some("AKE"));
        assert_eq!(events("q"), None);
    }

    #[test]
    fn a_switch_keeps_its_classes() {
        let switch = EventSwitch::default();
        assert_eq!(switch.classes(), EventClasses::NONE);
        switch.set(EventClasses::LIST.and(EventClasses::KEYSPACE));
        assert!(switch.classes().contains(EventClasses::LIST));
        assert!(!switch.classes().contains(EventClasses::GENERIC));
    }
}
