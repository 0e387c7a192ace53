use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// a tool of an MCP server that workers cannot use
    ///
    /// `check --online` compares `:tools` with the tools that the server offers, and compiles their schemas. A tool with
    /// an invalid schema is left out. With `--target`, it also names the parts of their schemas that the API rejects.
    pub(crate) MCP_TOOL, "DT315", "mcp-tool", Warning
}

/// The finding for a server. `problem`: one clause.
pub(crate) fn finding(at: Location, name: &str, problem: &str) -> Diagnostic {
    Diagnostic::new(&MCP_TOOL, at, format!("MCP server `{name}` {problem}"))
}
