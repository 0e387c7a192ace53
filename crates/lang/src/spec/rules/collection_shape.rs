use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an llm-tool-collection tool with the wrong structure
    ///
    /// `llm-tool-collection-deftool` takes a name, a plist, a list of arguments and a description before the body, in
    /// this order. An argument is `(name "description" :type …)`. The macro does not check its input and creates a
    /// broken spec. Versions of the macro before 2025-03-24 had other layouts: keys directly after the name, or the
    /// description among the specs and none after the arguments.
    ///
    /// ```el fails
    /// (llm-tool-collection-deftool read-note (:category "notes")
    ///   (path)
    ///   "Read a note."
    ///   (ignore path))
    /// ```
    ///
    /// ```el repaired
    /// (llm-tool-collection-deftool read-note (:category "notes")
    ///   ((path "Where the note is." :type string))
    ///   "Read a note."
    ///   (ignore path))
    /// ```
    pub(crate) COLLECTION_SHAPE, "DT130", "collection-shape", Error
}

/// The layout of the form.
const LAYOUT: &str = "`(llm-tool-collection-deftool NAME (SPECS…) ((ARG \"DOC\" :type …)…) \"DOC\" BODY…)`";

/// `place` is the expected element, with its article.
pub(in crate::spec) fn finding(at: Location, place: &str, found: &str) -> Diagnostic {
    Diagnostic::new(&COLLECTION_SHAPE, at, format!("expected {place}, found {found}")).note(LAYOUT)
}

/// `what` names the part that newer versions of the macro do not accept.
pub(in crate::spec) fn old_layout(at: Location, what: &str) -> Diagnostic {
    let message = format!("old layout of `llm-tool-collection-deftool`: {what}");
    Diagnostic::new(&COLLECTION_SHAPE, at, message).note(format!("since 2025-03-24: {LAYOUT}"))
}
