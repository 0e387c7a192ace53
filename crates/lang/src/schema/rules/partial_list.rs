use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an incomplete list of tools
    ///
    /// An MCP server may answer `tools/list` in pages. A `nextCursor` means that there are more pages. Pass the cursor
    /// to the next request, and import all pages together.
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

/// The cursor is at `location`.
pub(crate) fn finding(location: Location) -> Diagnostic {
    Diagnostic::new(&PARTIAL_LIST, location, "incomplete list of tools; request the next page with `nextCursor`")
}
