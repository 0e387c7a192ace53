//! Schemas that other programs wrote, such as MCP servers.
//!
//! [`to_current_draft`] converts a schema to JSON Schema 2020-12, with which its values are validated.
//! [`offered_parameters`] returns what is sent to a model API, which accepts fewer schemas than the protocol of the
//! program.

mod draft;
mod offer;

pub use draft::to_current_draft;
pub use offer::offered_parameters;
