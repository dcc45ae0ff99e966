//! The Redis protocol: incoming requests ([`wire::request`]) and outgoing replies ([`reply`] and
//! [`wire`]), in RESP2 and RESP3, with Redis's limits and error texts.
//!
//! The crate knows bytes, and neither commands nor connections. A request may come from any client:
//! parsing it neither panics nor reserves more memory than its bytes justify.

pub mod reply;
pub mod wire;
