//! Things with names.

use deftool_lang::syntax::quoted;

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

/// Returns a name of a tool or an argument as it is written in an ask: as a symbol, or as a string if a symbol would be read as
/// a number or a constant.
pub(crate) fn symbol_or_string(name: &str) -> String {
    let is_symbol =
        name.starts_with(|first: char| first.is_ascii_alphabetic()) && !matches!(name, "t" | "nil");
    if is_symbol { name.to_owned() } else { quoted(name) }
}
