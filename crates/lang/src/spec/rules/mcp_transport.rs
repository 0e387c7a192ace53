use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an MCP server with no transport, or with two
    ///
    /// A server is either a program to start (`:command`, a vector of its name and arguments) or a URL (`:url`).
    ///
    /// ```eld fails
    /// (defmcp :name "files")
    /// ```
    ///
    /// ```eld repaired
    /// (defmcp :name "files" :command ["mcp-server-filesystem" "notes/"])
    /// ```
    pub(crate) MCP_TRANSPORT, "DT304", "mcp-transport", Error
}

/// `both` means that there are two transports.
pub(in crate::spec) fn finding(at: Location, name: &str, both: bool) -> Diagnostic {
    let message = if both {
        format!("`{name}` has both a `:command` and a `:url`; remove one of them")
    } else {
        format!("missing `:command` or `:url` for `{name}`")
    };
    Diagnostic::new(&MCP_TRANSPORT, at, message).note("write `:command [\"program\" \"argument\"]` or `:url \"https://…\"`")
}
