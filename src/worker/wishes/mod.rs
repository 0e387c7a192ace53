//! What a worker's own spec wants of its user beyond what its tools want: a key sent somewhere, a program started.
//!
//! Whoever runs a project that others wrote asks for trust in these first ([`crate::project::Trust`]).

mod key;
mod server;

pub use key::{key_wish, key_wishes, names_key};
pub use server::{server_wish, server_wishes};
