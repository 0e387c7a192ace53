//! Permission requests of a worker's own spec, besides those of its tools: to contact a remote server, to send a key
//! there, to start a program.
//!
//! They must be granted before the project of another author runs ([`deftool_project::Trust`]).

mod endpoint;
mod server;

pub use endpoint::{endpoint_permission_request, endpoint_permission_requests, is_remote, names_key};
pub use server::{server_permission_request, server_permission_requests};
