use deftool_lang::diagnostic::{Diagnostic, Label, rule};
use deftool_lang::text::Location;

rule! {
    /// a tool that is defined again later in the same Emacs Lisp file
    ///
    /// Emacs evaluates a file in order, so the later definition of a name and category replaces the earlier one.
    /// deftool does the same. In a spec file two definitions of a name are an error.
    ///
    /// ```el fails
    /// (gptel-make-tool :name "now" :description "Tell the time." :function #'now)
    /// (gptel-make-tool :name "now" :description "Tell the exact time." :function #'now)
    /// ```
    ///
    /// ```el repaired
    /// (gptel-make-tool :name "now" :description "Tell the exact time." :function #'now)
    /// ```
    pub(crate) REPLACED_TOOL, "DT129", "replaced-tool", Warning
}

pub(crate) fn finding(at: Location, name: &str, first: Location) -> Diagnostic {
    let message = format!("this definition of `{name}` replaces an earlier one in the file");
    let mut finding = Diagnostic::new(&REPLACED_TOOL, at, message);
    finding.labels.push(Label { location: first, message: String::from("this definition is ignored") });
    finding
}
