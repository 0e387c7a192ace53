use crate::diagnostic::{Diagnostic, rule};
use crate::spec::nearest;
use crate::text::Location;

rule! {
    /// an unknown top-level form
    ///
    /// A spec file contains only specs and is never executed. Emacs Lisp code with tools in it belongs in an `.el`
    /// file, where other forms are ignored.
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

/// A form of stub scenarios that looks like a spec form.
const SCENARIO: &str = "defscenario";

/// Reports a list with the head `word`.
pub(in crate::spec) fn named(at: Location, word: &str, known: &[&str]) -> Diagnostic {
    if word == SCENARIO {
        let message = format!("`{word}` is a scenario of `deftool stub`, not a spec");
        return Diagnostic::new(&UNKNOWN_FORM, at, message)
            .note("keep it outside the specs, for example in `stub/`, and run it with `deftool stub FILE`");
    }
    let finding = Diagnostic::new(&UNKNOWN_FORM, at, format!("unknown form `{word}` in a spec file"));
    match nearest(word, known.iter().copied()) {
        Some(near) => finding
            .maybe_fixed_by(format!("write `{near}`"), at.span, near)
            .note(format!("did you mean `{near}`?")),
        None => finding.note(format!("known forms: {}", known.join(", "))),
    }
}

/// Reports any other value.
pub(in crate::spec) fn finding(at: Location, is_json: bool) -> Diagnostic {
    let finding = Diagnostic::new(&UNKNOWN_FORM, at, "expected a form such as `(deftool …)`");
    if is_json { finding.note("convert JSON definitions to specs with `deftool import`") } else { finding }
}

/// Reports a value passed by a program.
pub(in crate::spec) fn value(at: Location, head: Option<&str>) -> Diagnostic {
    let message = match head {
        Some(head) => format!("unknown tool form `{head}`"),
        None => String::from("expected a tool spec as a list"),
    };
    Diagnostic::new(&UNKNOWN_FORM, at, message)
}
