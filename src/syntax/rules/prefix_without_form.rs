use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a quote, backquote or comma with nothing after it
    ///
    /// A prefix belongs to the form that follows. Emacs refuses to read a list that ends right after one.
    ///
    /// ```el fails
    /// (gptel-make-tool :name "now" :description "Tell the current time." :function #'now :args ')
    /// ```
    ///
    /// ```el repaired
    /// (gptel-make-tool :name "now" :description "Tell the current time." :function #'now :args '())
    /// ```
    pub(crate) PREFIX_WITHOUT_FORM, "DT003", "prefix-without-form", Error
}

pub(in crate::syntax) fn finding(at: Location, prefix: &str) -> Diagnostic {
    Diagnostic::new(&PREFIX_WITHOUT_FORM, at, format!("`{prefix}` is followed by no form"))
}
