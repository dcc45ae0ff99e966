//! Kinds of values: what a setting or a remembered Redis parameter accepts, its usual form, and Redis's
//! errors (`config.c` of Redis 7.2).

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// The type of a setting, with the usual form of its values: what CONFIG GET answers.
pub trait Value: Sized {
    /// Parses the usual form. `None` for anything else.
    fn parse(text: &str) -> Option<Self>;
    /// Writes the usual form.
    fn render(&self) -> String;
}

/// Types whose usual form is that of `FromStr` and `Display`.
macro_rules! plain_values {
    ($($type:ty),+) => {$(
        impl Value for $type {
            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }

            fn render(&self) -> String {
                self.to_string()
            }
        }
    )+};
}

plain_values!(u16, u32, u64, i64, usize, String, IpAddr, SocketAddr);

impl Value for bool {
    fn parse(text: &str) -> Option<Self> {
        Some(text == "yes")
    }

    fn render(&self) -> String {
        if *self { "yes" } else { "no" }.to_owned()
    }
}

impl Value for PathBuf {
    fn parse(text: &str) -> Option<Self> {
        Some(PathBuf::from(text))
    }

    fn render(&self) -> String {
        self.display().to_string()
    }
}

/// `None` is the empty text.
impl<T: Value> Value for Option<T> {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "" => Some(None),
            text => T::parse(text).map(Some),
        }
    }

    fn render(&self) -> String {
        self.as_ref().map_or(String::new(), T::render)
    }
}

/// Values with a space between them.
impl<T: Value> Value for Vec<T> {
    fn parse(text: &str) -> Option<Self> {
        let words = text.split(' ').filter(|word| !word.is_empty());
        words.map(T::parse).collect()
    }

    fn render(&self) -> String {
        let words: Vec<String> = self.iter().map(T::render).collect();
        words.join(" ")
    }
}

/// The values that a setting or parameter accepts.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// `yes` or `no`.
    YesNo,
    /// One of these names.
    OneOf(&'static [&'static str]),
    /// Several of these names, with a space between them.
    SomeOf(&'static [&'static str]),
    /// A whole number between the ends, both included.
    Integer(i128, i128),
    /// A number of bytes between the ends: a whole number, or one with `k`, `kb`, `m`, `mb`,
    /// `g` or `gb`.
    Bytes(i128, i128),
    /// A number of bytes, or a share of the memory such as `5%`.
    BytesOrPercent,
    /// Any text.
    Text,
    /// Any text, and never shown outside CONFIG GET: a password.
    Secret,
    /// The path of a file or folder.
    Path,
    /// A value with special rules.
    Special(Special),
}

/// A kind with special rules.
#[derive(Debug, Clone, Copy)]
pub struct Special {
    /// Parses a value into its usual form. The error is Redis's if Redis has the setting. The second
    /// argument is the current value.
    pub normalise: fn(&str, &str) -> Result<String, String>,
    /// What it accepts, in words for a person.
    pub accepted: &'static str,
    /// The placeholder of a value in `--help`.
    pub placeholder: &'static str,
    /// Whether the file writes it as a list.
    pub is_list: bool,
}

impl Kind {
    /// Parses a value into its usual form, which CONFIG GET answers. `present` is the current value. The
    /// error is Redis's text after `CONFIG SET failed (possibly related to argument …) - `.
    pub fn normalise(&self, given: &str, present: &str) -> Result<String, String> {
        match *self {
            Kind::YesNo => ["yes", "no"]
                .iter()
                .find(|word| word.eq_ignore_ascii_case(given))
                .map(|word| (*word).to_owned())
                .ok_or_else(|| "argument must be 'yes' or 'no'".to_owned()),
            Kind::OneOf(names) => find_name(names, given).map(str::to_owned),
            Kind::SomeOf(names) => {
                let words: Result<Vec<_>, _> = given
                    .split(' ')
                    .map(|word| find_name(names, word))
                    .collect();
                check_shutdown_flags(&words?)
            }
            Kind::Integer(min, max) => match parse_integer(given) {
                Some(number) => in_bounds(number, min, max),
                None => Err("argument couldn't be parsed into an integer".to_owned()),
            },
            Kind::Bytes(min, max) => match parse_bytes(given) {
                Some(number) => in_bounds(number, min, max),
                None => Err("argument must be a memory value".to_owned()),
            },
            Kind::BytesOrPercent => bytes_or_percent(given),
            Kind::Text | Kind::Secret | Kind::Path => Ok(given.to_owned()),
            Kind::Special(special) => (special.normalise)(given, present),
        }
    }

    /// What is accepted, in words for a person.
    pub fn accepted(&self) -> String {
        match *self {
            Kind::YesNo => "yes or no".to_owned(),
            Kind::OneOf(names) => names.join(", "),
            Kind::SomeOf(names) => format!("any of {}, separated by spaces", names.join(", ")),
            Kind::Integer(min, max) => format!("a whole number from {min} to {max}"),
            Kind::Bytes(min, max) => {
                format!("bytes from {min} to {max}, with an optional unit (k, kb, m, mb, g, gb)")
            }
            Kind::BytesOrPercent => "bytes, or a percentage such as 5%".to_owned(),
            Kind::Text => "text".to_owned(),
            Kind::Secret => "text; empty for none".to_owned(),
            Kind::Path => "a path; empty for none".to_owned(),
            Kind::Special(special) => special.accepted.to_owned(),
        }
    }

    /// The placeholder of a value in `--help`.
    pub fn placeholder(&self) -> &'static str {
        match self {
            Kind::YesNo => "YES|NO",
            Kind::OneOf(_) | Kind::SomeOf(_) => "NAME",
            Kind::Integer(..) => "NUMBER",
            Kind::Bytes(..) | Kind::BytesOrPercent => "BYTES",
            Kind::Path => "PATH",
            Kind::Text | Kind::Secret => "TEXT",
            Kind::Special(special) => special.placeholder,
        }
    }

    /// Writes a value in its usual form as TOML.
    pub fn to_toml(&self, value: &str) -> String {
        match self {
            Kind::Integer(..) | Kind::Bytes(..) if parse_integer(value).is_some() => {
                value.to_owned()
            }
            Kind::Special(special) if special.is_list => {
                let words = value.split(' ').filter(|word| !word.is_empty());
                let items: Vec<String> = words.map(toml_string).collect();
                format!("[{}]", items.join(", "))
            }
            _ => toml_string(value),
        }
    }
}

/// A basic string of TOML.
pub(super) fn toml_string(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn find_name<'n>(names: &[&'n str], given: &str) -> Result<&'n str, String> {
    names
        .iter()
        .find(|name| name.eq_ignore_ascii_case(given))
        .copied()
        .ok_or_else(|| {
            format!(
                "argument(s) must be one of the following: {}",
                names.join(", ")
            )
        })
}

fn in_bounds(number: i128, min: i128, max: i128) -> Result<String, String> {
    if (min..=max).contains(&number) {
        Ok(number.to_string())
    } else {
        Err(format!(
            "argument must be between {min} and {max} inclusive"
        ))
    }
}

fn bytes_or_percent(given: &str) -> Result<String, String> {
    if let Some(number) = parse_bytes(given) {
        return in_bounds(number, 0, i128::from(i64::MAX));
    }
    match given.strip_suffix('%').and_then(parse_integer) {
        // Redis keeps a percentage as a negative number, so 0 % is 0 bytes.
        Some(0) => Ok("0".to_owned()),
        Some(1..=100) => Ok(given.to_owned()),
        Some(101..) => Err("percentage argument must be less or equal to 100".to_owned()),
        Some(_) | None => Err("argument must be a memory or percent value".to_owned()),
    }
}

/// A 64-bit integer as Redis reads it (`string2ll`): no `+`, no spaces, no leading zeros.
fn parse_integer(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_canonical = digits.bytes().all(|byte| byte.is_ascii_digit())
        && (text == "0" || !digits.starts_with('0'));
    if !is_canonical {
        return None;
    }
    text.parse::<i64>().ok().map(i128::from)
}

/// A number of bytes as Redis reads it (`memtoull`). Without digits it is 0.
pub(super) fn parse_bytes(text: &str) -> Option<i128> {
    let unit_at = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(unit_at)?;
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    if digits.is_empty() {
        return Some(0);
    }
    let number = digits.parse::<u64>().unwrap_or(u64::MAX);
    Some(i128::from(number.saturating_mul(factor)))
}

/// `save` and `nosave` exclude each other in Redis's flags of a shutdown, the only parameters
/// that take several names.
fn check_shutdown_flags(words: &[&str]) -> Result<String, String> {
    if words.contains(&"save") && words.contains(&"nosave") {
        return Err("shutdown options SAVE and NOSAVE can't be used simultaneously".to_owned());
    }
    Ok(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_redis_reads_them() {
        assert_eq!(parse_integer("-7"), Some(-7));
        assert_eq!(parse_integer("0"), Some(0));
        for wrong in ["", "-", "+1", " 1", "01", "-0", "1x", "9223372036854775808"] {
            assert_eq!(parse_integer(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn bytes_take_decimal_and_binary_units() {
        assert_eq!(parse_bytes("5kb"), Some(5120));
        assert_eq!(parse_bytes("5K"), Some(5000));
        assert_eq!(parse_bytes("1GB"), Some(1 << 30));
        assert_eq!(parse_bytes(""), Some(0));
        assert_eq!(parse_bytes("-1"), None);
        assert_eq!(parse_bytes("1x"), None);
    }

    #[test]
    fn refusals_are_in_the_words_of_redis() {
        let refuse = |kind: Kind, given: &str| kind.normalise(given, "").unwrap_err();
        assert_eq!(
            refuse(Kind::Integer(0, 10), "11"),
            "argument must be between 0 and 10 inclusive"
        );
        assert_eq!(
            refuse(Kind::Integer(0, 10), "1x"),
            "argument couldn't be parsed into an integer"
        );
        assert_eq!(
            refuse(Kind::YesNo, "maybe"),
            "argument must be 'yes' or 'no'"
        );
        assert_eq!(
            refuse(Kind::OneOf(&["everysec", "always"]), "x"),
            "argument(s) must be one of the following: everysec, always"
        );
        assert_eq!(
            refuse(Kind::BytesOrPercent, "500%"),
            "percentage argument must be less or equal to 100"
        );
    }

    #[test]
    fn names_are_found_in_any_case_and_kept_in_theirs() {
        assert_eq!(
            Kind::OneOf(&["always"]).normalise("ALWAYS", ""),
            Ok("always".into())
        );
        assert_eq!(Kind::YesNo.normalise("Yes", ""), Ok("yes".into()));
    }

    #[test]
    fn text_survives_toml() {
        let text = "a\"b\\\n'";
        let table: toml::Table = format!("x = {}", Kind::Secret.to_toml(text))
            .parse()
            .unwrap();
        assert_eq!(table["x"].as_str(), Some(text));
        assert_eq!(Kind::Integer(0, 9).to_toml("3"), "3");
    }

    #[test]
    fn save_and_nosave_exclude_each_other() {
        assert_eq!(
            check_shutdown_flags(&["save", "now"]),
            Ok("save now".into())
        );
        assert!(check_shutdown_flags(&["save", "nosave"]).is_err());
    }
}
