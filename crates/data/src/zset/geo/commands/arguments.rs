//! Places and lengths as arguments, with Redis's errors.

use bytes::Bytes;

use crate::command::arguments::{argument, double, is_word};
use crate::error::CommandError;
use crate::zset::geo::{Coordinates, Form};
use quoin_base::number::parse_double;

/// `longitude latitude …`.
///
/// # Errors
/// `NotAFloat`; `Text` if a score cannot express the place.
pub(super) fn coordinates(words: &[Bytes]) -> Result<Coordinates, CommandError> {
    let place = Coordinates {
        longitude: double(argument(words, 0)?)?,
        latitude: double(argument(words, 1)?)?,
    };
    if place.are_in_range() {
        return Ok(place);
    }
    let line = format!(
        "ERR invalid longitude,latitude pair {:.6},{:.6}",
        place.longitude, place.latitude
    );
    Err(CommandError::Text(line.into()))
}

/// `radius unit …` as a circle and the unit in metres.
///
/// # Errors
/// `Text`.
pub(super) fn circle(words: &[Bytes]) -> Result<(Form, f64), CommandError> {
    let radius = length(argument(words, 0)?, "ERR need numeric radius")?;
    if radius < 0.0 {
        return Err(CommandError::text("ERR radius cannot be negative"));
    }
    Ok((Form::Circle { radius }, unit_m(argument(words, 1)?)?))
}

/// `width height unit …` as a box and the unit in metres.
///
/// # Errors
/// `Text`.
pub(super) fn boxed(words: &[Bytes]) -> Result<(Form, f64), CommandError> {
    let width = length(argument(words, 0)?, "ERR need numeric width")?;
    let height = length(argument(words, 1)?, "ERR need numeric height")?;
    if width < 0.0 || height < 0.0 {
        return Err(CommandError::text("ERR height or width cannot be negative"));
    }
    Ok((Form::Box { width, height }, unit_m(argument(words, 2)?)?))
}

fn length(word: &[u8], message: &'static str) -> Result<f64, CommandError> {
    parse_double(word).ok_or(CommandError::text(message))
}

/// A unit in metres.
///
/// # Errors
/// `Text`.
pub(super) fn unit_m(word: &[u8]) -> Result<f64, CommandError> {
    const UNITS: [(&str, f64); 4] = [
        ("m", 1.0),
        ("km", 1_000.0),
        ("ft", 0.3048),
        ("mi", 1_609.34),
    ];
    let unit = UNITS.iter().find(|(name, _)| is_word(word, name));
    unit.map(|(_, metres)| *metres).ok_or(CommandError::text(
        "ERR unsupported unit provided. please use M, KM, FT, MI",
    ))
}
