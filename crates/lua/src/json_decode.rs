//! `cjson.decode`, see [`super::json`].

use mlua::{Lua, Value};

use super::json_settings::{Invalid, NESTING_MAX, Settings, null};
use super::library::Raise;
use super::numbers::strtod;
use super::state::Meter;

/// Reads JSON.
pub(crate) fn decode(
    lua: &Lua,
    settings: &Settings,
    text: &[u8],
    meter: Meter<'_>,
) -> Result<Value, Raise> {
    if let [first, second, ..] = text
        && (*first == 0 || *second == 0)
    {
        let reason = "JSON parser does not support UTF-16 or UTF-32";
        return Err(Raise::Text(reason.to_owned()));
    }
    let mut decoder = Decoder {
        lua,
        settings,
        text,
        at: 0,
        depth: 0,
        meter,
    };
    let (token, place) = decoder.next();
    let value = decoder.value(token, place)?;
    match decoder.next() {
        (Token::End, _) => Ok(value),
        (token, place) => Err(unexpected("the end", &token, place)),
    }
}

struct Decoder<'t> {
    lua: &'t Lua,
    settings: &'t Settings,
    text: &'t [u8],
    at: usize,
    depth: i32,
    meter: Meter<'t>,
}

enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    String(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Wrong(&'static str),
}

impl Token {
    fn name(&self) -> &'static str {
        match self {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::String(_) => "T_STRING",
            Token::Number(_) => "T_NUMBER",
            Token::Boolean(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::End => "T_END",
            Token::Wrong(reason) => reason,
        }
    }
}

fn unexpected(expected: &str, found: &Token, place: usize) -> Raise {
    let found = found.name();
    let place = place + 1;
    Raise::Text(format!(
        "Expected {expected} but found {found} at character {place}"
    ))
}

impl Decoder<'_> {
    /// The byte `ahead` positions further. 0 after the end, as in C.
    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next token, and where it begins, or the position of the error.
    fn next(&mut self) -> (Token, usize) {
        while matches!(self.peek(0), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        let place = self.at;
        let single = match self.peek(0) {
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b',' => Token::Comma,
            b':' => Token::Colon,
            0 => return (Token::End, place),
            b'"' => return self.string(place),
            b'-' | b'0'..=b'9' => {
                let is_refused =
                    self.settings.decode_invalid.get() == Invalid::Off && self.is_invalid_number();
                return match is_refused {
                    true => (Token::Wrong("invalid number"), place),
                    false => self.number(place),
                };
            }
            b'f' | b'i' | b'I' | b'n' | b'N' | b't' | b'+' => return self.word(place),
            _ => return (Token::Wrong("invalid token"), place),
        };
        self.at += 1;
        (single, place)
    }

    fn word(&mut self, place: usize) -> (Token, usize) {
        let words = [
            (b"true".as_slice(), Token::Boolean(true)),
            (b"false", Token::Boolean(false)),
            (b"null", Token::Null),
        ];
        for (word, token) in words {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return (token, place);
            }
        }
        let is_number =
            self.settings.decode_invalid.get() != Invalid::Off && self.is_invalid_number();
        match is_number {
            true => self.number(place),
            false => (Token::Wrong("invalid token"), place),
        }
    }

    fn number(&mut self, place: usize) -> (Token, usize) {
        match strtod(self.rest()) {
            Some((number, length)) => {
                self.at += length;
                (Token::Number(number), place)
            }
            None => (Token::Wrong("invalid number"), place),
        }
    }

    /// Whether this is a number that C reads and JSON does not have.
    fn is_invalid_number(&self) -> bool {
        if self.peek(0) == b'+' {
            return true;
        }
        let ahead = usize::from(self.peek(0) == b'-');
        match self.peek(ahead) {
            b'0' => matches!(self.peek(ahead + 1), b'x' | b'X' | b'0'..=b'9'),
            byte if byte <= b'9' => false,
            _ => {
                let word = self.rest().get(ahead..ahead + 3).unwrap_or_default();
                word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"nan")
            }
        }
    }

    fn string(&mut self, place: usize) -> (Token, usize) {
        self.at += 1;
        let mut string = Vec::new();
        loop {
            let byte = match self.peek(0) {
                b'"' => break,
                0 => return (Token::Wrong("unexpected end of string"), self.at),
                b'\\' => match self.peek(1) {
                    b'u' => match self.code_point() {
                        Some(bytes) => {
                            string.extend_from_slice(&bytes);
                            continue;
                        }
                        None => return (Token::Wrong("invalid unicode escape code"), self.at),
                    },
                    escape => {
                        let byte = match escape {
                            b'"' | b'\\' | b'/' => escape,
                            b'b' => 0x08,
                            b't' => b'\t',
                            b'n' => b'\n',
                            b'f' => 0x0c,
                            b'r' => b'\r',
                            _ => return (Token::Wrong("invalid escape code"), self.at),
                        };
                        self.at += 1;
                        byte
                    }
                },
                byte => byte,
            };
            string.push(byte);
            self.at += 1;
        }
        self.at += 1;
        (Token::String(string), place)
    }

    fn hex(&self, ahead: usize) -> Option<u32> {
        let digits = self.rest().get(ahead..ahead + 4)?;
        digits.iter().try_fold(0, |value, digit| {
            Some(value * 16 + char::from(*digit).to_digit(16)?)
        })
    }

    /// Reads `\uXXXX`, or two of them that form one character.
    fn code_point(&mut self) -> Option<Vec<u8>> {
        let mut code = self.hex(2)?;
        let mut length = 6;
        if code & 0xF800 == 0xD800 {
            if code & 0x400 != 0 || self.peek(6) != b'\\' || self.peek(7) != b'u' {
                return None;
            }
            let low = self.hex(8)?;
            if low & 0xFC00 != 0xDC00 {
                return None;
            }
            code = (((code & 0x3FF) << 10) | (low & 0x3FF)) + 0x1_0000;
            length = 12;
        }
        self.at += length;
        let mut buffer = [0; 4];
        let text = char::from_u32(code)?.encode_utf8(&mut buffer);
        Some(text.as_bytes().to_vec())
    }

    fn descend(&mut self) -> Result<(), Raise> {
        self.depth += 1;
        if self.depth <= self.settings.decode_max_depth.get().min(NESTING_MAX) {
            return Ok(());
        }
        let depth = self.depth;
        let text = format!(
            "Found too many nested data structures ({depth}) at character {}",
            self.at
        );
        Err(Raise::Text(text))
    }

    fn value(&mut self, token: Token, place: usize) -> Result<Value, Raise> {
        self.meter.reach(self.at)?;
        Ok(match token {
            Token::String(text) => Value::String(self.lua.create_string(text)?),
            Token::Number(number) => Value::Number(number),
            Token::Boolean(value) => Value::Boolean(value),
            Token::Null => null(),
            Token::ObjectBegin => self.object()?,
            Token::ArrayBegin => self.array()?,
            other => return Err(unexpected("value", &other, place)),
        })
    }

    fn object(&mut self) -> Result<Value, Raise> {
        self.descend()?;
        let table = self.lua.create_table()?;
        let (mut token, mut place) = self.next();
        if !matches!(token, Token::ObjectEnd) {
            loop {
                let Token::String(name) = token else {
                    return Err(unexpected("object key string", &token, place));
                };
                match self.next() {
                    (Token::Colon, _) => {}
                    (other, place) => return Err(unexpected("colon", &other, place)),
                }
                let (first, first_place) = self.next();
                let value = self.value(first, first_place)?;
                table.raw_set(self.lua.create_string(name)?, value)?;
                match self.next() {
                    (Token::ObjectEnd, _) => break,
                    (Token::Comma, _) => {}
                    (other, place) => {
                        return Err(unexpected("comma or object end", &other, place));
                    }
                }
                (token, place) = self.next();
            }
        }
        self.depth -= 1;
        Ok(Value::Table(table))
    }

    fn array(&mut self) -> Result<Value, Raise> {
        self.descend()?;
        let table = self.lua.create_table()?;
        let (mut token, mut place) = self.next();
        if !matches!(token, Token::ArrayEnd) {
            for number in 1_i64.. {
                let value = self.value(token, place)?;
                table.raw_set(number, value)?;
                match self.next() {
                    (Token::ArrayEnd, _) => break,
                    (Token::Comma, _) => {}
                    (other, place) => {
                        return Err(unexpected("comma or array end", &other, place));
                    }
                }
                (token, place) = self.next();
            }
        }
        self.depth -= 1;
        Ok(Value::Table(table))
    }
}
