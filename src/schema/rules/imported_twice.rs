use crate::diagnostic::{Diagnostic, Label, rule};
use crate::text::Location;

rule! {
    /// two definitions of a name in one import
    ///
    /// A project cannot hold two tools of one name, and one of two files would overwrite the other. The first is imported.
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

/// The tool at `location` has the name of the one at `first`.
pub(crate) fn finding(location: Location, name: &str, first: Location) -> Diagnostic {
    let message = format!("a second tool called `{name}`; left out");
    let mut finding = Diagnostic::new(&IMPORTED_TWICE, location, message);
    finding.labels.push(Label { location: first, message: String::from("the first") });
    finding
}
