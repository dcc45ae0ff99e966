//! Tests of what several files do together, and the documents that are made from the table.

mod document;
mod load;
mod runtime;
