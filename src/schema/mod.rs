//! JSON Schema of tools: what each API is sent, and what the model's arguments are held against.

mod tool_set;
mod validate;

pub use tool_set::{ToolEntry, ToolKind, ToolSet};
pub use validate::{ArgumentValidator, SchemaError, Violation};
