//! Geohashes: a place on the earth as bits, which name a cell of a grid. As in Redis's `geohash.c`.
//!
//! Each step halves the cell in both directions. Bits of the longitude and of the latitude
//! alternate, so the numbers of cells within a cell are consecutive. 26 steps make the 52 bits that
//! a score holds exactly.

/// The steps of a score.
pub(super) const STEPS: u32 = 26;
const SCORE_BITS: u32 = 2 * STEPS;

/// A place on the earth, in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coordinates {
    /// East of Greenwich.
    pub longitude: f64,
    /// North of the equator.
    pub latitude: f64,
}

/// Numbers from `min` to `max`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Interval {
    /// The position of a number in the interval, as an integer of `steps` bits.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn offset(self, number: f64, steps: u32) -> u32 {
        let offset = (number - self.min) / (self.max - self.min);
        (offset * power_of_two(steps)) as u32
    }

    /// The part of the interval at this offset.
    fn part(self, offset: u32, steps: u32) -> Self {
        let scale = self.max - self.min;
        let at = |offset: u32| self.min + (f64::from(offset) / power_of_two(steps)) * scale;
        Self {
            min: at(offset),
            max: at(offset.wrapping_add(1)),
        }
    }

    fn middle(self) -> f64 {
        (self.min + self.max) / 2.0
    }

    fn contains(self, number: f64) -> bool {
        number >= self.min && number <= self.max
    }
}

/// A part of the earth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Area {
    pub(super) longitude: Interval,
    pub(super) latitude: Interval,
}

/// The area that scores cover: the square of Web Mercator (EPSG:3857), which ends before the poles.
pub(super) const WORLD: Area = Area {
    longitude: Interval {
        min: -180.0,
        max: 180.0,
    },
    latitude: Interval {
        min: -85.051_128_78,
        max: 85.051_128_78,
    },
};

/// The area of standard geohashes.
const GLOBE: Area = Area {
    latitude: Interval {
        min: -90.0,
        max: 90.0,
    },
    ..WORLD
};

impl Coordinates {
    /// Whether a score can express them.
    pub fn are_in_range(&self) -> bool {
        WORLD.longitude.contains(self.longitude) && WORLD.latitude.contains(self.latitude)
    }

    /// The score of a member at this place.
    #[allow(clippy::cast_precision_loss)]
    pub fn score(&self) -> f64 {
        Cell::at(WORLD, *self, STEPS).bits as f64
    }

    /// The place of a score: the middle of its cell. Any number is read as Redis on x86 reads it.
    pub fn of_score(score: f64) -> Self {
        let cell = Cell {
            bits: to_bits(score),
            steps: STEPS,
        };
        let area = cell.area();
        let within = |world: Interval, part: Interval| part.middle().clamp(world.min, world.max);
        Self {
            longitude: within(WORLD.longitude, area.longitude),
            latitude: within(WORLD.latitude, area.latitude),
        }
    }

    /// The standard geohash in eleven letters. A score does not hold the bits of the last letter,
    /// which is always `0`.
    pub fn geohash(&self) -> String {
        const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
        const LETTERS: u32 = 10;
        const LETTER_BITS: u32 = 5;
        let bits = Cell::at(GLOBE, *self, STEPS).bits;
        let letter = |number: u32| {
            let digit = (bits >> (SCORE_BITS - number * LETTER_BITS)) & 0x1f;
            let letter = usize::try_from(digit).ok().and_then(|at| ALPHABET.get(at));
            char::from(*letter.unwrap_or(&b'0'))
        };
        (1..=LETTERS).map(letter).chain(['0']).collect()
    }
}

/// A cell of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    bits: u64,
    pub(super) steps: u32,
}

const LATITUDE_BITS: u64 = 0x5555_5555_5555_5555;
const LONGITUDE_BITS: u64 = 0xaaaa_aaaa_aaaa_aaaa;

impl Cell {
    /// The cell of a place after this number of steps. Places at the eastern and the northern end
    /// are just outside of the last cell, as in Redis.
    pub(super) fn at(area: Area, place: Coordinates, steps: u32) -> Self {
        let latitude = area.latitude.offset(place.latitude, steps);
        let longitude = area.longitude.offset(place.longitude, steps);
        Self {
            bits: spread(latitude) | spread(longitude) << 1,
            steps,
        }
    }

    /// The area of the cell.
    pub(super) fn area(self) -> Area {
        let latitude = gather(self.bits);
        let longitude = gather(self.bits >> 1);
        Area {
            longitude: WORLD.longitude.part(longitude, self.steps),
            latitude: WORLD.latitude.part(latitude, self.steps),
        }
    }

    /// The neighbour −1, 0 or 1 cells to the east and to the north. Beyond an edge of the world it
    /// is on the opposite side.
    pub(super) fn neighbour(self, east: i8, north: i8) -> Self {
        let unused = 64 - 2 * self.steps;
        let shift = |bits: u64, own: u64, others: u64, direction: i8| {
            // Ones in all bits of the other direction pass a carry on to the next own bit.
            let between = others >> unused;
            let shifted = match direction {
                0 => return bits & own,
                1.. => (bits & own).wrapping_add(between.wrapping_add(1)),
                _ => ((bits & own) | between).wrapping_sub(between.wrapping_add(1)),
            };
            shifted & (own >> unused)
        };
        let longitude = shift(self.bits, LONGITUDE_BITS, LATITUDE_BITS, east);
        let latitude = shift(self.bits, LATITUDE_BITS, LONGITUDE_BITS, north);
        Self {
            bits: longitude | latitude,
            ..self
        }
    }

    /// The scores of members within the cell: from the first to the second, which is excluded.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn scores(self) -> (f64, f64) {
        let align = |bits: u64| (bits << (SCORE_BITS - 2 * self.steps)) as f64;
        (align(self.bits), align(self.bits.wrapping_add(1)))
    }
}

#[allow(clippy::cast_precision_loss)]
fn power_of_two(exponent: u32) -> f64 {
    (1_u64 << exponent) as f64
}

/// A score as bits: the conversion of C as x86 does it, even where C does not define it.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn to_bits(score: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    let signed = |number: f64| {
        if (-HALF..HALF).contains(&number) {
            number as i64 as u64
        } else {
            1 << 63
        }
    };
    if score < HALF {
        signed(score)
    } else {
        signed(score - HALF) ^ 1 << 63
    }
}

/// Inserts a zero before each bit.
fn spread(number: u32) -> u64 {
    let mut bits = u64::from(number);
    bits = (bits | bits << 16) & 0x0000_ffff_0000_ffff;
    bits = (bits | bits << 8) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits << 2) & 0x3333_3333_3333_3333;
    (bits | bits << 1) & LATITUDE_BITS
}

/// Takes every second bit, from the lowest.
#[allow(clippy::cast_possible_truncation)]
fn gather(bits: u64) -> u32 {
    let mut bits = bits & LATITUDE_BITS;
    bits = (bits | bits >> 1) & 0x3333_3333_3333_3333;
    bits = (bits | bits >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits >> 4) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits >> 8) & 0x0000_ffff_0000_ffff;
    (bits | bits >> 16) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(longitude: f64, latitude: f64) -> Coordinates {
        Coordinates {
            longitude,
            latitude,
        }
    }

    #[test]
    fn places_have_redis_scores_and_everybodys_geohashes() {
        // From Redis's documentation of GEOADD, GEOPOS and GEOHASH.
        for (longitude, latitude, score, geohash) in [
            (13.361389, 38.115556, 3_479_099_956_230_698.0, "sqc8b49rny0"),
            (15.087269, 37.502669, 3_479_447_370_796_909.0, "sqdtr74hyu0"),
        ] {
            let place = at(longitude, latitude);
            assert_eq!(place.score(), score);
            let found = Coordinates::of_score(score);
            assert_eq!(found.geohash(), geohash);
            assert!((found.longitude - longitude).abs() < 1e-5, "{found:?}");
            assert!((found.latitude - latitude).abs() < 1e-5, "{found:?}");
        }
    }

    #[test]
    fn neighbours_are_around_a_cell_and_go_around_the_world() {
        let cell = Cell::at(WORLD, at(0.0, 0.0), 1);
        assert_eq!(cell.bits, 0b11);
        assert_eq!(cell.neighbour(1, 0).bits, 0b01);
        assert_eq!(cell.neighbour(-1, 0).bits, 0b01);
        assert_eq!(cell.neighbour(0, 1).bits, 0b10);
        assert_eq!(cell.neighbour(1, -1).bits, 0b00);
    }

    #[test]
    fn any_score_is_a_place() {
        for score in [
            -1.0,
            -1e300,
            1e300,
            f64::INFINITY,
            f64::NEG_INFINITY,
            0.5,
            1.8e19,
        ] {
            assert!(Coordinates::of_score(score).are_in_range(), "{score}");
        }
        assert_eq!(to_bits(-1.0), u64::MAX);
        assert_eq!(to_bits(1e300), 0);
        assert_eq!(to_bits(-1e300), 1 << 63);
        assert_eq!(to_bits(9_223_372_036_854_775_808.0), 1 << 63);
    }

    proptest! {
        #[test]
        fn spread_bits_are_gathered_again(number: u32, other: u32) {
            let bits = spread(number) | spread(other) << 1;
            prop_assert_eq!((gather(bits), gather(bits >> 1)), (number, other));
        }

        #[test]
        fn a_place_is_in_its_cell(longitude in -180.0..180.0, latitude in -85.0..85.0, steps in 1_u32..27) {
            let place = at(longitude, latitude);
            let cell = Cell::at(WORLD, place, steps);
            let area = cell.area();
            // The ends are rounded.
            let near = |interval: Interval, number: f64| {
                number >= interval.min - 1e-12 && number <= interval.max + 1e-12
            };
            prop_assert!(near(area.longitude, longitude) && near(area.latitude, latitude));
            let (min, max) = cell.scores();
            prop_assert!(min <= place.score() && place.score() < max);
            prop_assert_eq!(Coordinates::of_score(place.score()).score(), place.score());
        }

        #[test]
        fn a_way_there_and_back_ends_where_it_began(
            longitude in -180.0..180.0,
            latitude in -85.0..85.0,
            steps in 1_u32..27,
            east in -1_i8..2,
            north in -1_i8..2,
        ) {
            let cell = Cell::at(WORLD, at(longitude, latitude), steps);
            prop_assert_eq!(cell.neighbour(east, north).neighbour(-east, -north), cell);
        }
    }
}
