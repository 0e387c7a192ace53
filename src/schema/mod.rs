//! JSON Schema of tools: what each API is sent, and what the model's arguments are held against.
//!
//! [`emit`] makes the JSON of a [`Target`]; [`compile_tool`] makes the [`ToolEntry`] that a request holds: the
//! definition to send and the validator for the calls that come back. [`Importer`] is the way back from definitions to
//! tools, [`emit_gptel`] the one to Emacs.

mod compile;
mod examples;
mod gptel;
mod import;
mod judge;
mod references;
pub mod rules;
mod target;
mod tool_set;
mod validate;

pub use compile::compile_tool;
pub use gptel::emit_gptel;
pub use import::{Import, ImportFormat, Importer};
pub use target::{Target, emit, emit_definition};
pub use tool_set::{ToolEntry, ToolSet};
pub use validate::{ArgumentValidator, SchemaError, Violation};

pub use crate::spec::ToolKind;
