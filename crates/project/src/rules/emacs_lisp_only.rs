use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// a tool that is implemented in Emacs Lisp only
    ///
    /// The tool is checked and compiled, but deftool cannot run its `:function`. Reported once per file, because an
    /// Emacs configuration may define many tools.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time.")
    /// (gptel-make-tool :name "today" :description "Tell the date." :function #'today)
    /// ```
    ///
    /// ```lua scripts/now.lua fails
    /// return function() return "noon" end
    /// ```
    ///
    /// ```eld repaired
    /// (gptel-make-tool :name "today" :description "Tell the date." :function #'today)
    /// ```
    ///
    /// ```lua scripts/today.lua repaired
    /// return function() return "Friday" end
    /// ```
    pub(crate) EMACS_LISP_ONLY, "DT405", "emacs-lisp-only", Note
}

/// `path`: the expected path of a script.
pub(crate) fn finding(at: Location, name: &str, path: &str) -> Diagnostic {
    let message =
        format!("`{name}` is implemented in Emacs Lisp; deftool can check and compile it, but not run it");
    Diagnostic::new(&EMACS_LISP_ONLY, at, message)
        .note(format!("to run it with deftool, write {path}; other tools in this file are not reported"))
}
