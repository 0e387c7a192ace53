use crate::diagnostic::{Diagnostic, Label, rule};
use crate::text::Location;

rule! {
    /// two imported definitions with the same name
    ///
    /// A project cannot have two tools with the same name. Only the first definition is imported.
    ///
    /// ```json fails
    /// [{"name": "now", "description": "Tell the date."}, {"name": "now", "description": "Tell the time."}]
    /// ```
    ///
    /// ```json repaired
    /// [{"name": "today", "description": "Tell the date."}, {"name": "now", "description": "Tell the time."}]
    /// ```
    pub(crate) IMPORTED_TWICE, "DT612", "imported-twice", Error
}

/// The tool at `location` has the same name as the tool at `first`.
pub(crate) fn finding(location: Location, name: &str, first: Location) -> Diagnostic {
    let message = format!("duplicate tool `{name}`; ignored");
    let mut finding = Diagnostic::new(&IMPORTED_TWICE, location, message);
    finding.labels.push(Label { location: first, message: String::from("first defined here") });
    finding
}
