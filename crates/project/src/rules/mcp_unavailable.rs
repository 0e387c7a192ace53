use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// an MCP server that cannot be used
    ///
    /// `check --online` starts or contacts the server, and lists its tools. A worker that uses such a server does not
    /// start.
    pub(crate) MCP_UNAVAILABLE, "DT306", "mcp-unavailable", Error
}

/// The finding for a server. `reason`: one clause.
pub(crate) fn finding(at: Location, name: &str, reason: &str) -> Diagnostic {
    Diagnostic::new(&MCP_UNAVAILABLE, at, format!("MCP server `{name}`: {reason}"))
}
