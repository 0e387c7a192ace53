use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a list of tools that goes on
    ///
    /// An MCP server may answer `tools/list` page by page: where there is a `nextCursor`, this is not the last. Ask again with it and import all the answers
    /// together.
    ///
    /// ```json fails
    /// {"tools": [{"name": "now", "description": "Tell the time.", "inputSchema": {"type": "object"}}], "nextCursor": "page-2"}
    /// ```
    ///
    /// ```json repaired
    /// {"tools": [{"name": "now", "description": "Tell the time.", "inputSchema": {"type": "object"}}]}
    /// ```
    pub(crate) PARTIAL_LIST, "DT613", "partial-list", Warning
}

/// The cursor stands at `location`.
pub(crate) fn finding(location: Location) -> Diagnostic {
    Diagnostic::new(&PARTIAL_LIST, location, "the list goes on where this cursor leads; these are not all tools")
}
