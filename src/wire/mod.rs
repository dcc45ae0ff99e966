//! RESP on the wire: requests in, replies out.

pub mod encode;
mod grisu;
mod inline;
pub mod number;
pub mod request;
