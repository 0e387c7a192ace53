//! Things with names.

/// Something with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entity {
    /// A tool or an exit tool.
    Tool(String),
    /// An argument of a tool.
    Argument { tool: String, name: String },
    /// A worker.
    Worker(String),
}
