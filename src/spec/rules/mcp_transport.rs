use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an MCP server that cannot be reached, or in two ways
    ///
    /// A server is either a program that is started (`:command`, a vector of its name and arguments) or an address (`:url`).
    ///
    /// ```eld fails
    /// (defmcp :name "files")
    /// ```
    ///
    /// ```eld repaired
    /// (defmcp :name "files" :command ["mcp-server-filesystem" "notes/"]) ; deftool: allow(mcp-without-effect)
    /// ```
    pub(crate) MCP_TRANSPORT, "DT304", "mcp-transport", Error
}

/// `both`: there are two.
pub(in crate::spec) fn finding(at: Location, name: &str, both: bool) -> Diagnostic {
    let message = if both {
        format!("`{name}` has a `:command` and a `:url`; an MCP server is one of them")
    } else {
        format!("`{name}` needs a `:command` or a `:url`")
    };
    Diagnostic::new(&MCP_TRANSPORT, at, message).note("write `:command [\"program\" \"argument\"]` or `:url \"https://…\"`")
}
