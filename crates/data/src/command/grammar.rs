//! The grammar of a command's arguments, as COMMAND DOCS describes it.
//!
//! Names, types and tokens are those of Redis 7.2. redis-cli uses them for hints, and client libraries are generated
//! from them.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

/// The kind of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any bytes.
    String,
    /// A 64-bit integer.
    Integer,
    /// A floating-point number.
    Double,
    /// A key.
    Key,
    /// A glob pattern.
    Pattern,
    /// A Unix time.
    UnixTime,
    /// Only its token.
    PureToken,
    /// One of several arguments.
    OneOf,
    /// Several consecutive arguments.
    Block,
}

impl Kind {
    /// The name in COMMAND DOCS.
    pub fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::Integer => "integer",
            Kind::Double => "double",
            Kind::Key => "key",
            Kind::Pattern => "pattern",
            Kind::UnixTime => "unix-time",
            Kind::PureToken => "pure-token",
            Kind::OneOf => "oneof",
            Kind::Block => "block",
        }
    }
}

/// One argument, or several that belong together.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    /// Its name; `None` uses the token in lower case.
    pub own_name: Option<&'static str>,
    /// Its kind.
    pub kind: Kind,
    /// The word before it; for a pure token, the word itself.
    pub token: Option<&'static str>,
    /// The name in help texts, if different.
    pub shown_name: Option<&'static str>,
    /// Index of the command's key specification that it belongs to, from 0.
    pub key_spec: Option<i64>,
    /// The version of Redis that introduced it, if later than the command's.
    pub since: Option<&'static str>,
    /// The version of Redis that deprecated it.
    pub deprecated_since: Option<&'static str>,
    /// It may be omitted.
    pub is_optional: bool,
    /// It may be repeated.
    pub is_multiple: bool,
    /// Its token is repeated with it.
    pub repeats_token: bool,
    /// The alternatives or parts.
    pub parts: &'static [Argument],
}

const fn argument(own_name: Option<&'static str>, kind: Kind) -> Argument {
    Argument {
        own_name,
        kind,
        token: None,
        shown_name: None,
        key_spec: None,
        since: None,
        deprecated_since: None,
        is_optional: false,
        is_multiple: false,
        repeats_token: false,
        parts: &[],
    }
}

/// A key named `key`, with the index of its key specification.
pub const fn key(key_spec: i64) -> Argument {
    Argument {
        key_spec: Some(key_spec),
        ..argument(Some("key"), Kind::Key)
    }
}

/// Any bytes.
pub const fn string(name: &'static str) -> Argument {
    argument(Some(name), Kind::String)
}

/// An integer.
pub const fn integer(name: &'static str) -> Argument {
    argument(Some(name), Kind::Integer)
}

/// A floating-point number.
pub const fn double(name: &'static str) -> Argument {
    argument(Some(name), Kind::Double)
}

/// A glob pattern.
pub const fn pattern(name: &'static str) -> Argument {
    argument(Some(name), Kind::Pattern)
}

/// A Unix time.
pub const fn unix_time(name: &'static str) -> Argument {
    argument(Some(name), Kind::UnixTime)
}

/// A literal word, named after itself in lower case.
pub const fn token(token: &'static str) -> Argument {
    argument(None, Kind::PureToken).token(token)
}

/// One of several arguments.
pub const fn oneof(name: &'static str, alternatives: &'static [Argument]) -> Argument {
    Argument {
        parts: alternatives,
        ..argument(Some(name), Kind::OneOf)
    }
}

/// Several consecutive arguments.
pub const fn block(name: &'static str, parts: &'static [Argument]) -> Argument {
    Argument {
        parts,
        ..argument(Some(name), Kind::Block)
    }
}

/// `[COUNT count]`, which commands of several families accept.
pub const COUNT: Argument = integer("count").token("COUNT").optional();

/// `[LIMIT offset count]`, which commands of several families accept.
pub const LIMIT: Argument = block("limit", &[integer("offset"), integer("count")])
    .token("LIMIT")
    .optional();

impl Argument {
    /// Changes its name.
    pub const fn named(self, name: &'static str) -> Self {
        Self {
            own_name: Some(name),
            ..self
        }
    }

    /// Sets the word before it.
    pub const fn token(self, token: &'static str) -> Self {
        Self {
            token: Some(token),
            ..self
        }
    }

    /// Sets the name in help texts.
    pub const fn shown_as(self, shown_name: &'static str) -> Self {
        Self {
            shown_name: Some(shown_name),
            ..self
        }
    }

    /// Links it to the command's key specification of this index.
    pub const fn key_spec(self, key_spec: i64) -> Self {
        Self {
            key_spec: Some(key_spec),
            ..self
        }
    }

    /// Sets the version of Redis that introduced it.
    pub const fn since(self, since: &'static str) -> Self {
        Self {
            since: Some(since),
            ..self
        }
    }

    /// Sets the version of Redis that deprecated it.
    pub const fn deprecated_since(self, since: &'static str) -> Self {
        Self {
            deprecated_since: Some(since),
            ..self
        }
    }

    /// It may be omitted.
    pub const fn optional(self) -> Self {
        Self {
            is_optional: true,
            ..self
        }
    }

    /// It may be repeated. A token appears only before the first occurrence.
    pub const fn multiple(self) -> Self {
        Self {
            is_multiple: true,
            ..self
        }
    }

    /// It may be repeated, each time with its token.
    pub const fn multiple_with_token(self) -> Self {
        Self {
            repeats_token: true,
            ..self.multiple()
        }
    }

    /// Its name in COMMAND DOCS.
    pub fn name(&self) -> Cow<'static, str> {
        match (self.own_name, self.token) {
            (Some(name), _) => Cow::Borrowed(name),
            (None, token) => Cow::Owned(token.unwrap_or_default().to_ascii_lowercase()),
        }
    }

    /// The name in help texts. Alternatives and blocks have none.
    pub fn display_text(&self) -> Option<Cow<'static, str>> {
        match self.kind {
            Kind::OneOf | Kind::Block => None,
            _ => Some(self.shown_name.map_or_else(|| self.name(), Cow::Borrowed)),
        }
    }

    /// Writes one occurrence, without the brackets of an optional argument.
    fn write_once(&self, to: &mut Formatter<'_>, with_token: bool) -> fmt::Result {
        if let Some(token) = self.token.filter(|_| with_token) {
            to.write_str(token)?;
            if self.kind != Kind::PureToken {
                to.write_str(" ")?;
            }
        }
        match self.kind {
            Kind::PureToken => Ok(()),
            Kind::Block => write!(to, "{}", Syntax(self.parts)),
            Kind::OneOf if self.is_optional && self.token.is_none() && !self.is_multiple => {
                write_separated(to, self.parts, " | ")
            }
            Kind::OneOf => {
                to.write_str("<")?;
                write_separated(to, self.parts, " | ")?;
                to.write_str(">")
            }
            _ => to.write_str(&self.display_text().unwrap_or_default()),
        }
    }
}

/// In the style of redis.io: `[LIMIT offset count]`, `element [element ...]`, `<LEFT | RIGHT>`.
impl Display for Argument {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        if self.is_optional {
            to.write_str("[")?;
        }
        self.write_once(to, true)?;
        if self.is_multiple {
            to.write_str(" [")?;
            self.write_once(to, self.repeats_token)?;
            to.write_str(" ...]")?;
        }
        if self.is_optional {
            to.write_str("]")?;
        }
        Ok(())
    }
}

/// The syntax of consecutive arguments.
pub struct Syntax<'a>(pub &'a [Argument]);

impl Display for Syntax<'_> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write_separated(to, self.0, " ")
    }
}

fn write_separated(to: &mut Formatter<'_>, arguments: &[Argument], separator: &str) -> fmt::Result {
    for (number, argument) in arguments.iter().enumerate() {
        if number > 0 {
            to.write_str(separator)?;
        }
        write!(to, "{argument}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
