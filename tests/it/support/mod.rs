//! What several tests need.

pub(crate) mod project;
pub(crate) mod server;
