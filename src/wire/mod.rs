//! RESP on the wire: requests in, replies out.
