use crate::diagnostic::{Diagnostic, Edit, rule};
use crate::text::Location;

rule! {
    /// commas between the items of a list
    ///
    /// Whitespace separates list items. A comma belongs to the form after it and is only meaningful inside a backquoted
    /// form. Everywhere else Emacs reads `,x` as the list `(\, x)`. There is one finding per form.
    ///
    /// ```eld fails
    /// (deftool :name "now", :description "Tell the time.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    pub(crate) COMMA_BETWEEN, "DT012", "comma-between", Error
}

/// `at` is the first of the commas that `edits` remove.
pub(in crate::syntax) fn finding(at: Location, edits: Vec<Edit>) -> Diagnostic {
    let finding =
        Diagnostic::new(&COMMA_BETWEEN, at, "list items are separated by whitespace, not by commas");
    let title = if edits.len() > 1 { "remove the commas" } else { "remove the comma" };
    finding.fixed_by_edits(title, edits)
}
