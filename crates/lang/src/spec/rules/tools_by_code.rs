use crate::diagnostic::{Diagnostic, rule};
use crate::spec::Wrapper;
use crate::text::Location;

rule! {
    /// tools created by code
    ///
    /// If a function that makes tools is passed to `mapcar`, `apply` or a similar function, its arguments are only
    /// known in a running Emacs. The same applies to a list with the keys of a tool that is passed to an unknown
    /// function. deftool does not execute code, so these tools are neither checked nor compiled. There is one finding
    /// per file.
    ///
    /// A loop over a quoted table of plists is read. So are the calls of your own function or macro that takes the keys of a
    /// tool, if its name is in `:tool-forms` of a `defproject` form, in a spec file of the project or, for a file outside of
    /// a project, in an `.eld` file in the same folder. The declaration is proposed for a function or macro that passes its
    /// `&rest` or `&key` parameters, or a parameter with a plist, to `gptel-make-tool` or to another such function, also
    /// with keys that it adds or replaces (`append`, `plist-put`).
    ///
    /// ```el fails
    /// (mapc (lambda (spec) (apply #'gptel-make-tool spec)) my-specs)
    /// ```
    ///
    /// ```el repaired
    /// (gptel-make-tool :name "now" :description "Tell the time." :function #'current-time-string)
    /// ```
    pub TOOLS_BY_CODE, "DT133", "tools-by-code", Note
}

/// `function` is the function name as written.
pub fn finding(at: Location, function: Option<&str>) -> Diagnostic {
    let with = function.map_or_else(String::new, |function| format!(" with `{function}`"));
    let message = format!("tools that code creates{with} are not checked");
    Diagnostic::new(&TOOLS_BY_CODE, at, message).note("deftool does not execute code; write the tools as forms to check them")
}

/// The finding for a wrapper whose calls would be read if it was declared.
pub fn undeclared_wrapper(at: Location, wrapper: &Wrapper, in_project: bool) -> Diagnostic {
    let message = format!("tools that `{}` makes are not checked", wrapper.name.value);
    let place = if in_project { "a spec file of the project" } else { "an `.eld` file in the same folder" };
    let declaration = wrapper.declaration();
    Diagnostic::new(&TOOLS_BY_CODE, at, message)
        .note(format!("to check them, add `(defproject :tool-forms ({declaration}))` to {place}"))
}
