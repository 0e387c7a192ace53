use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a definition to import that has no name
    ///
    /// A tool is called by its name. A plain JSON Schema takes it from its `title`, its `$id`, or the name of its file.
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

/// `missing` is what could have named it.
pub(crate) fn finding(location: Location, missing: &str) -> Diagnostic {
    Diagnostic::new(&NAMELESS_TOOL, location, format!("a tool without a name: it has no {missing}"))
}
