use crate::diagnostic::{Diagnostic, rule};
use crate::spec::nearest;
use crate::text::Location;

rule! {
    /// a top-level form that is none of the known ones
    ///
    /// A spec file holds specs and nothing else; it is never executed. Emacs Lisp with tools somewhere in it belongs into an
    /// `.el` file, where other forms are left alone.
    ///
    /// ```eld fails
    /// (deftol :name "now" :description "Tell the time.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    pub(crate) UNKNOWN_FORM, "DT101", "unknown-form", Error
}

/// A form of another language that looks like ours.
const SCENARIO: &str = "defscenario";

/// A list whose head is `word`.
pub(in crate::spec) fn named(at: Location, word: &str, known: &[&str]) -> Diagnostic {
    if word == SCENARIO {
        let message = format!("`{word}` is a scenario of `deftool stub`, not a spec");
        return Diagnostic::new(&UNKNOWN_FORM, at, message)
            .note("keep it outside of the specs, in `stub/` say, and play it with `deftool stub FILE`");
    }
    let finding = Diagnostic::new(&UNKNOWN_FORM, at, format!("`{word}` is no form of a spec file"));
    match nearest(word, known.iter().copied()) {
        Some(near) => finding
            .maybe_fixed_by(format!("write `{near}`"), at.span, near)
            .note(format!("did you mean `{near}`?")),
        None => finding.note(format!("known forms: {}", known.join(", "))),
    }
}

/// Anything else.
pub(in crate::spec) fn finding(at: Location, is_json: bool) -> Diagnostic {
    let finding = Diagnostic::new(&UNKNOWN_FORM, at, "expected a form such as `(deftool …)`");
    if is_json { finding.note("of definitions in JSON `deftool import` makes specs") } else { finding }
}

/// A value that a program holds.
pub(in crate::spec) fn value(at: Location, head: Option<&str>) -> Diagnostic {
    let message = match head {
        Some(head) => format!("`{head}` is no tool form"),
        None => String::from("a tool spec is a list"),
    };
    Diagnostic::new(&UNKNOWN_FORM, at, message)
}
