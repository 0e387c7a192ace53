use crate::diagnostic::{Diagnostic, Edit, rule};
use crate::text::Location;

rule! {
    /// commas between the items of a list
    ///
    /// Items are separated by blanks. A comma belongs to the form after it and means something below a backquote only; anywhere
    /// else Emacs reads `,x` as the list `(\, x)`. Told once a form.
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

/// `at` is the first of those that `edits` take out.
pub(in crate::syntax) fn finding(at: Location, edits: Vec<Edit>) -> Diagnostic {
    let finding = Diagnostic::new(&COMMA_BETWEEN, at, "items are not separated by commas");
    let title = if edits.len() > 1 { "remove the commas" } else { "remove the comma" };
    finding.fixed_by_edits(title, edits)
}
