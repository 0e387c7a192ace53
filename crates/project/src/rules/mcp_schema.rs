use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// a schema of an MCP server that model APIs do not accept as it is
    ///
    /// `check --online --target` names the tools whose schema has alternatives at the top, such as `anyOf`. One of them
    /// would make every request fail. The properties of the alternatives are sent as optional properties, and calls are
    /// validated against the complete schema.
    pub(crate) MCP_SCHEMA, "DT316", "mcp-schema", Note
}

/// The finding for a server. `change`: one clause.
pub(crate) fn finding(at: Location, name: &str, change: &str) -> Diagnostic {
    Diagnostic::new(&MCP_SCHEMA, at, format!("MCP server `{name}` {change}"))
}
