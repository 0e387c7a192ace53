use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// tools created by code
    ///
    /// If a function that makes tools is passed to `mapcar`, `apply` or a similar function, its arguments are only
    /// known in a running Emacs. The same applies to a list with the keys of a tool that is passed to an unknown
    /// function. deftool does not execute code, so these tools are neither checked nor compiled. There is one finding
    /// per file.
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

/// `function` is the function name as written.
pub(in crate::spec) fn finding(at: Location, function: Option<&str>) -> Diagnostic {
    let with = function.map_or_else(String::new, |function| format!(" with `{function}`"));
    let message = format!("tools that code creates{with} are not checked");
    Diagnostic::new(&TOOLS_BY_CODE, at, message).note("deftool does not execute code; write the tools as forms to check them")
}
