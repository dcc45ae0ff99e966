//! The area of a search: a circle or a box around a place, the distances in it, and the cells that
//! it reaches. As in Redis's `geohash_helper.c`, rounding included, so that the same members are
//! found in the same order.

use std::f64::consts::PI;

use super::geohash::{Cell, Coordinates, STEPS, WORLD};

const RADIANS_PER_DEGREE: f64 = PI / 180.0;
/// Redis's earth is a sphere.
const EARTH_RADIUS_M: f64 = 6_372_797.560_856;
/// Half of the square of Web Mercator.
const MERCATOR_MAX_M: f64 = 20_037_726.37;

/// The form of a search, in the client's unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    /// Places that are at most `radius` away.
    Circle {
        /// Not negative.
        radius: f64,
    },
    /// Places that are at most half the width to the east or west, and at most half the height to
    /// the north or south.
    Box {
        /// Not negative.
        width: f64,
        /// Not negative.
        height: f64,
    },
}

/// The area of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Its middle.
    pub center: Coordinates,
    /// Its form.
    pub form: Form,
    /// The client's unit in metres.
    pub unit_m: f64,
}

/// Metres between two places on a sphere (haversine).
pub fn distance_m(from: Coordinates, to: Coordinates) -> f64 {
    let half_longitude = ((radians(to.longitude) - radians(from.longitude)) / 2.0).sin();
    if half_longitude == 0.0 {
        return latitude_distance_m(from.latitude, to.latitude);
    }
    let (from, to) = (radians(from.latitude), radians(to.latitude));
    let half_latitude = ((to - from) / 2.0).sin();
    let square =
        half_latitude * half_latitude + from.cos() * to.cos() * half_longitude * half_longitude;
    // Rounding may give more than 1 for opposite places, which has no arc sine.
    2.0 * EARTH_RADIUS_M * square.sqrt().min(1.0).asin()
}

fn latitude_distance_m(from: f64, to: f64) -> f64 {
    EARTH_RADIUS_M * (radians(to) - radians(from)).abs()
}

fn radians(degrees: f64) -> f64 {
    degrees * RADIANS_PER_DEGREE
}

fn degrees(radians: f64) -> f64 {
    radians / RADIANS_PER_DEGREE
}

impl Shape {
    /// Metres from the center to a place, if the place is inside.
    pub(super) fn distance_inside_m(&self, place: Coordinates) -> Option<f64> {
        let distance = distance_m(self.center, place);
        let is_inside = match self.form {
            Form::Circle { radius } => distance <= radius * self.unit_m,
            Form::Box { width, height } => {
                let below = Coordinates {
                    longitude: self.center.longitude,
                    ..place
                };
                let to_north = latitude_distance_m(place.latitude, self.center.latitude);
                to_north <= height * self.unit_m / 2.0
                    && distance_m(place, below) <= width * self.unit_m / 2.0
            }
        };
        is_inside.then_some(distance)
    }

    /// The cells that the shape reaches, in the order in which Redis reads them: first the cell of
    /// the center, then those around it, each once.
    pub(super) fn cells(&self) -> Vec<Cell> {
        let bounds = self.bounds();
        let mut steps = self.steps();
        let mut center = Cell::at(WORLD, self.center, steps);
        if steps > 1 && !bounds.are_near(center) {
            steps -= 1;
            center = Cell::at(WORLD, self.center, steps);
        }
        let area = center.area();
        // After fewer than two steps, the cells around the center are the whole world.
        let is_reached = |(east, north): &(i8, i8)| {
            steps < 2
                || !((*north < 0 && area.latitude.min < bounds.south)
                    || (*north > 0 && area.latitude.max > bounds.north)
                    || (*east < 0 && area.longitude.min < bounds.west)
                    || (*east > 0 && area.longitude.max > bounds.east))
        };
        let directions = [
            (0, 1),
            (0, -1),
            (1, 0),
            (-1, 0),
            (1, 1),
            (-1, 1),
            (1, -1),
            (-1, -1),
        ];
        let mut cells = vec![center];
        for (east, north) in directions.into_iter().filter(is_reached) {
            let cell = center.neighbour(east, north);
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
        cells
    }

    /// The number of steps after which a cell is about as large as the shape.
    fn steps(&self) -> u32 {
        let mut reach_m = self.unit_m
            * match self.form {
                Form::Circle { radius } => radius,
                Form::Box { width, height } => {
                    ((width / 2.0) * (width / 2.0) + (height / 2.0) * (height / 2.0)).sqrt()
                }
            };
        if reach_m == 0.0 {
            return STEPS;
        }
        let mut steps = 1_i32;
        while reach_m < MERCATOR_MAX_M {
            reach_m *= 2.0;
            steps += 1;
        }
        steps -= 2;
        // Towards the poles a cell is narrower.
        let latitude = self.center.latitude.abs();
        steps -= i32::from(latitude > 66.0) + i32::from(latitude > 80.0);
        u32::try_from(steps).unwrap_or(1).clamp(1, STEPS)
    }

    /// The bounds of the shape in degrees. Near the poles they may be outside of the world, as in
    /// Redis.
    fn bounds(&self) -> Bounds {
        let Coordinates {
            longitude,
            latitude,
        } = self.center;
        let (half_width, half_height) = match self.form {
            Form::Circle { radius } => (radius, radius),
            Form::Box { width, height } => (width / 2.0, height / 2.0),
        };
        let to_north = degrees(self.unit_m * half_height / EARTH_RADIUS_M);
        // In degrees, a shape is widest at its end nearest to a pole.
        let widest = if latitude < 0.0 {
            latitude - to_north
        } else {
            latitude + to_north
        };
        let width = self.unit_m * half_width / EARTH_RADIUS_M;
        let to_east = degrees(width / radians(widest).cos());
        Bounds {
            west: longitude - to_east,
            east: longitude + to_east,
            south: latitude - to_north,
            north: latitude + to_north,
        }
    }
}

struct Bounds {
    west: f64,
    east: f64,
    south: f64,
    north: f64,
}

impl Bounds {
    /// Whether they are within a cell and its neighbours.
    fn are_near(&self, cell: Cell) -> bool {
        !(cell.neighbour(0, 1).area().latitude.max < self.north
            || cell.neighbour(0, -1).area().latitude.min > self.south
            || cell.neighbour(1, 0).area().longitude.max < self.east
            || cell.neighbour(-1, 0).area().longitude.min > self.west)
    }
}
