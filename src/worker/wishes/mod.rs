//! What a worker's own spec wants of its user beyond what its tools want: a server
//! elsewhere, a key sent there, a program started.
//!
//! Whoever runs a project that others wrote asks for trust in these first ([`crate::project::Trust`]).

mod endpoint;
mod server;

pub use endpoint::{endpoint_wish, endpoint_wishes, is_remote, names_key};
pub use server::{server_wish, server_wishes};
