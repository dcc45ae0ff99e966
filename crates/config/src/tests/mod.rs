//! Tests of several files together, and the documents generated from the table.

mod document;
mod load;
mod runtime;
