use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// tools that code makes
    ///
    /// Where a function that makes tools is handed to `mapcar`, `apply` or the like, what it is called with is known only once Emacs
    /// runs. Nothing is executed here, so nothing is said of those tools, and they do not compile. Told once a file.
    ///
    /// ```el fails
    /// (mapc (lambda (spec) (apply #'gptel-make-tool spec)) my-specs)
    /// ```
    ///
    /// ```el repaired
    /// (gptel-make-tool :name "now" :description "Tell the time." :function #'current-time-string)
    /// ```
    pub(crate) TOOLS_BY_CODE, "DT133", "tools-by-code", Note
}

/// `function`: as it is written.
pub(in crate::spec) fn finding(at: Location, function: &str) -> Diagnostic {
    let message = format!("the tools that code makes with `{function}` are not looked at");
    Diagnostic::new(&TOOLS_BY_CODE, at, message).note("nothing is executed here; write them as forms to have them checked")
}
