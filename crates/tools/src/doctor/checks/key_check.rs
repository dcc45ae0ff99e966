//! What the checks that look at keys have in common.

use crate::doctor::report::Line;
use crate::doctor::scan::KeyPage;
use crate::doctor::target::{Answer, DoctorTarget};

/// A check that is shown all keys, page by page.
pub(in crate::doctor) trait KeyCheck {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Looks at some keys. What it is shown was so a moment ago.
    fn look<'c>(&'c mut self, target: &'c DoctorTarget<'_>, page: &'c KeyPage) -> Answer<'c, ()>;

    /// What it has found.
    fn line(&self) -> Line;
}
