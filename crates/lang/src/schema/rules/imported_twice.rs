use crate::diagnostic::{Diagnostic, Label, rule};
use crate::text::Location;

rule! {
    /// two imported definitions with the same name
    ///
    /// A project cannot have two tools with the same name. Only the last definition is imported, as Emacs keeps it.
    ///
    /// ```json fails
    /// [{"name": "now", "description": "Tell the date."}, {"name": "now", "description": "Tell the time."}]
    /// ```
    ///
    /// ```json repaired
    /// [{"name": "today", "description": "Tell the date."}, {"name": "now", "description": "Tell the time."}]
    /// ```
    pub(crate) IMPORTED_TWICE, "DT612", "imported-twice", Warning
}

/// The tool at `location` has the same name as the later tool at `last`.
pub(crate) fn finding(location: Location, name: &str, last: Location) -> Diagnostic {
    let message = format!("duplicate tool `{name}`; only the last definition is imported");
    let mut finding = Diagnostic::new(&IMPORTED_TWICE, location, message);
    finding.labels.push(Label { location: last, message: String::from("the last definition") });
    finding
}
