//! Handles, which expose only the operations that a type has on one of its values.
//!
//! A type names its handles and implements its operations on them:
//!
//! ```ignore
//! pub enum ListType {}
//! pub type List<'c, 't> = Value<'c, 't, ListType>;
//! pub type ListMut<'c, 't> = ValueMut<'c, 't, ListType>;
//!
//! impl List<'_, '_> { /* reads */ }
//! impl ListMut<'_, '_> { /* writes */ }
//! ```

use std::marker::PhantomData;
use std::ops::Deref;

use crate::keyspace::key::OpenKey;
use crate::unit::context::{ReadContext, WriteContext};

/// A value of the type `T`, for reading.
pub struct Value<'c, 't, T> {
    pub(crate) context: &'c ReadContext<'t>,
    pub(crate) key: &'c OpenKey,
    of_type: PhantomData<T>,
}

impl<'c, 't, T> Value<'c, 't, T> {
    /// Opens the value of a key whose type was checked.
    pub fn open(context: &'c ReadContext<'t>, key: &'c OpenKey) -> Self {
        Self {
            context,
            key,
            of_type: PhantomData,
        }
    }
}

/// A value of the type `T`, for writing. It includes the operations of [`Value`].
pub struct ValueMut<'c, 't, T> {
    read: Value<'c, 't, T>,
    pub(crate) context: &'c WriteContext<'t>,
}

impl<'c, 't, T> ValueMut<'c, 't, T> {
    /// Opens the value of a key that was found with this type or created.
    pub fn open(context: &'c WriteContext<'t>, key: &'c OpenKey) -> Self {
        Self {
            read: Value::open(context, key),
            context,
        }
    }
}

impl<'c, 't, T> Deref for ValueMut<'c, 't, T> {
    type Target = Value<'c, 't, T>;

    fn deref(&self) -> &Value<'c, 't, T> {
        &self.read
    }
}
