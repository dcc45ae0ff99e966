//! RESP on the wire: requests in, replies out.

pub mod encode;
pub mod inline;
pub mod reply_reader;
pub mod request;

pub use inline::split_arguments;
pub use request::ProtocolError;
