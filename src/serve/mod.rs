//! Servers of ours.
//!
//! [`stub`] plays a model's server for tests, on a real socket: well-behaved, or wrong in every way that servers are known
//! to be wrong in.

pub mod stub;
