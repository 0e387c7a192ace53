//! Permission requests of a worker's own spec, besides those of its tools: to contact a remote server, to send a key there, to
//! start a program.
//!
//! Whoever runs a project that others wrote asks for trust in these first ([`crate::project::Trust`]).

mod endpoint;
mod server;

pub use endpoint::{endpoint_wish, endpoint_wishes, is_remote, names_key};
pub use server::{server_wish, server_wishes};
