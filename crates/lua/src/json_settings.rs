//! The settings of `cjson` that scripts can change. The state of a machine owns them. This module
//! is below `json`.

use std::cell::Cell;

use mlua::{LightUserData, Value};

const DEPTH_MAX: i32 = 1_000;
/// Deepest nesting with any settings: each level takes some of the fiber's stack.
pub(super) const NESTING_MAX: i32 = 2_000;
pub(super) const PRECISION: i32 = 14;

/// How to handle numbers that JSON cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Invalid {
    Off = 0,
    On = 1,
    Null = 2,
}

/// The settings that scripts can change. Each script begins with the defaults, because any machine
/// may run it.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) sparse_convert: Cell<bool>,
    pub(super) sparse_ratio: Cell<i32>,
    pub(super) sparse_safe: Cell<i32>,
    pub(super) encode_max_depth: Cell<i32>,
    pub(super) decode_max_depth: Cell<i32>,
    pub(super) encode_invalid: Cell<Invalid>,
    pub(super) decode_invalid: Cell<Invalid>,
    pub(super) keep_buffer: Cell<bool>,
    pub(super) precision: Cell<i32>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sparse_convert: Cell::new(false),
            sparse_ratio: Cell::new(2),
            sparse_safe: Cell::new(10),
            encode_max_depth: Cell::new(DEPTH_MAX),
            decode_max_depth: Cell::new(DEPTH_MAX),
            encode_invalid: Cell::new(Invalid::Off),
            decode_invalid: Cell::new(Invalid::On),
            keep_buffer: Cell::new(true),
            precision: Cell::new(PRECISION),
        }
    }
}

impl Settings {
    /// Back to the defaults.
    pub(super) fn reset(&self) {
        let fresh = Self::default();
        self.sparse_convert.set(fresh.sparse_convert.get());
        self.sparse_ratio.set(fresh.sparse_ratio.get());
        self.sparse_safe.set(fresh.sparse_safe.get());
        self.encode_max_depth.set(fresh.encode_max_depth.get());
        self.decode_max_depth.set(fresh.decode_max_depth.get());
        self.encode_invalid.set(fresh.encode_invalid.get());
        self.decode_invalid.set(fresh.decode_invalid.get());
        self.keep_buffer.set(fresh.keep_buffer.get());
        self.precision.set(fresh.precision.get());
    }
}

/// JSON's null.
pub(super) fn null() -> Value {
    Value::LightUserData(LightUserData(std::ptr::null_mut()))
}
