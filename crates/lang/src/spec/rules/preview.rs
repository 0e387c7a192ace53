use crate::diagnostic::{Diagnostic, rule};
use crate::spec::preview::{PreviewProblem, preview_problem};
use crate::text::Location;

rule! {
    /// a preview feature that cannot be enabled
    ///
    /// `:preview` enables features that may change or leave. One that became stable needs no name, and one that was removed
    /// has no effect. A form that is a preview is reported until its project enables it.
    ///
    /// ```eld fails
    /// (defproject :preview (script-type))
    /// ```
    ///
    /// ```eld repaired
    /// (defproject :preview (script-types))
    /// ```
    pub(crate) PREVIEW, "DT147", "preview", Warning
}

/// Reports a name in `:preview` that enables nothing.
pub(in crate::spec) fn finding(at: Location, name: &str) -> Option<Diagnostic> {
    let PreviewProblem { message, similar, help } = preview_problem(name)?;
    let finding = Diagnostic::new(&PREVIEW, at, message);
    Some(match similar {
        Some(similar) => finding.did_you_mean(at.span, similar),
        None => finding.note(help),
    })
}

/// Reports a form that is a preview, in a project that does not enable it.
pub fn of_form(at: Location, head: &str, feature: &str) -> Diagnostic {
    Diagnostic::new(&PREVIEW, at, format!("`{head}` is a preview and may change or leave"))
        .note(format!("enable it with `(defproject :preview ({feature}))`"))
}
