use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an MCP server definition, which has no effect yet
    ///
    /// `defmcp` is parsed and checked so that specs can contain it, but workers do not call MCP servers yet.
    ///
    /// ```eld fails
    /// (defmcp :name "files" :command ["mcp-server-filesystem" "notes/"])
    /// ```
    ///
    /// ```eld repaired
    /// ; (defmcp :name "files" :command ["mcp-server-filesystem" "notes/"])
    /// ```
    pub(crate) MCP_WITHOUT_EFFECT, "DT306", "mcp-without-effect", Note
}

pub(in crate::spec) fn finding(at: Location) -> Diagnostic {
    Diagnostic::new(&MCP_WITHOUT_EFFECT, at, "`defmcp` has no effect yet: workers do not call MCP servers")
}
