use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a definition to import without a name
    ///
    /// A tool needs a name to be called. For a plain JSON Schema, the name is its `title`, its `$id`, or the name of
    /// its file.
    ///
    /// ```json fails
    /// {"description": "Tell the time.", "input_schema": {"type": "object"}}
    /// ```
    ///
    /// ```json repaired
    /// {"name": "now", "description": "Tell the time.", "input_schema": {"type": "object"}}
    /// ```
    pub(crate) NAMELESS_TOOL, "DT603", "nameless-tool", Error
}

/// `missing` lists the missing sources of a name.
pub(crate) fn finding(location: Location, missing: &str) -> Diagnostic {
    Diagnostic::new(&NAMELESS_TOOL, location, format!("missing tool name: no {missing}"))
}
