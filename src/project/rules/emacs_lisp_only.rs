use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a tool whose implementation is Emacs Lisp and that has no script
    ///
    /// It is checked and compiled like any other; deftool cannot run its `:function`. Told once a file, for people check their
    /// Emacs configuration.
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

/// `wanted`: the script that would run it.
pub(in crate::project) fn finding(at: Location, name: &str, wanted: &str) -> Diagnostic {
    let message =
        format!("`{name}` is implemented in Emacs Lisp; deftool checks and compiles it, and cannot run it");
    Diagnostic::new(&EMACS_LISP_ONLY, at, message)
        .note(format!("to run it here, write {wanted}; further tools of this file are not told"))
}
