//! The versions of Redis that a server can say it is.

/// The version of Redis that clients see, which determines replies
/// (docs/understand/decisions/043-told-version.md). Commands and options work with either version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum RedisVersion {
    /// Redis 7.2, on which replies are modelled.
    #[default]
    V7_2,
    /// Redis 8.4.
    V8_4,
}

impl RedisVersion {
    /// The names of the versions.
    pub const NAMES: &'static [&'static str] = &["7.2", "8.4"];

    /// The version of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::V7_2, Self::V8_4]
            .into_iter()
            .find(|version| version.name() == name)
    }

    /// Its name in the settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::V7_2 => "7.2",
            Self::V8_4 => "8.4",
        }
    }

    /// The version with its patch level, as clients see it.
    pub fn text(self) -> &'static str {
        match self {
            Self::V7_2 => "7.2.6",
            Self::V8_4 => "8.4.0",
        }
    }

    /// The same as a number, with a byte for each part.
    pub fn number(self) -> u32 {
        match self {
            Self::V7_2 => 0x0007_0206,
            Self::V8_4 => 0x0008_0400,
        }
    }

    /// Whether it includes what was added in version `since`, such as `7.4.0`.
    pub fn has(self, since: &str) -> bool {
        let (major, minor) = match self {
            Self::V7_2 => (7, 2),
            Self::V8_4 => (8, 4),
        };
        let mut numbers = since.split('.').map(|number| number.parse::<u32>().ok());
        (numbers.next().flatten(), numbers.next().flatten()) <= (Some(major), Some(minor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_and_the_name_are_of_the_text() {
        for name in RedisVersion::NAMES {
            let version = RedisVersion::from_name(name).unwrap();
            assert_eq!(version.name(), *name);
            let parts = version.text().split('.').map(|part| part.parse::<u32>());
            let number = parts.fold(0, |number, part| number << 8 | part.unwrap());
            assert_eq!(version.number(), number);
            assert!(version.has(version.text()));
        }
        assert_eq!(RedisVersion::from_name("7.0"), None);
    }

    #[test]
    fn a_version_has_what_came_with_it_or_before() {
        for (since, in_7_2, in_8_4) in [
            ("1.0.0", true, true),
            ("7.2.4", true, true),
            ("7.4.0", false, true),
            ("8.4.0", false, true),
            ("8.10.0", false, false),
        ] {
            assert_eq!(RedisVersion::V7_2.has(since), in_7_2, "{since}");
            assert_eq!(RedisVersion::V8_4.has(since), in_8_4, "{since}");
        }
    }
}
