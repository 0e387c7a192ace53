use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a tool of llm-tool-collection that is not built as its macro wants it
    ///
    /// `llm-tool-collection-deftool` takes a name, a plist, a list of arguments and a description, in this order, before the
    /// body; an argument is `(name "description" :type …)`. The macro takes whatever stands there and makes a broken spec.
    ///
    /// ```el fails
    /// (llm-tool-collection-deftool read-note (:category "notes")
    ///   ((path :type string))
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

/// `place`: what belongs there, with its article.
pub(in crate::spec) fn finding(at: Location, place: &str, found: &str) -> Diagnostic {
    Diagnostic::new(&COLLECTION_SHAPE, at, format!("expected {place}, found {found}"))
        .note("`(llm-tool-collection-deftool NAME (SPECS…) ((ARG \"DOC\" :type …)…) \"DOC\" BODY…)`")
}
