use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a quote, backquote or comma with nothing after it
    ///
    /// A prefix applies to the form after it. Emacs cannot read a list that ends directly after a prefix.
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
    Diagnostic::new(&PREFIX_WITHOUT_FORM, at, format!("missing form after `{prefix}`"))
}
