use deftool_lang::diagnostic::{Diagnostic, Label, rule};
use deftool_lang::spec::nearest;
use deftool_lang::text::Location;

rule! {
    /// an allow or deny that has no effect
    ///
    /// Use the code or the name of a rule. `deftool rule` lists all rules.
    ///
    /// ```eld fails
    /// (defproject :deny [mising-description])
    /// ```
    ///
    /// ```eld repaired
    /// (defproject :deny [missing-description])
    /// ```
    ///
    /// An error means that an API rejects the tool or that the definition is ambiguous. Such a tool is not compiled or
    /// offered to a model. Only warnings and notes can be silenced.
    ///
    /// ```eld fails
    /// (defproject :allow [invalid-name])
    /// ```
    ///
    /// ```eld repaired
    /// (defproject :allow [missing-description])
    /// ```
    pub(crate) INVALID_ALLOW, "DT125", "invalid-allow", Warning
}

/// The finding for an unknown rule.
pub(crate) fn finding(at: Location, word: &str) -> Diagnostic {
    let names = super::all().into_iter().flat_map(|rule| [rule.name, rule.code]);
    let finding = Diagnostic::new(&INVALID_ALLOW, at, format!("unknown rule `{word}`"));
    match nearest(word, names) {
        Some(near) => finding.labelled(format!("did you mean `{near}`?")),
        None => finding.note("`deftool rule` lists all rules"),
    }
}

/// The finding for a rule or finding that is an error. `error`: the location of an error that the allow would silence.
pub(crate) fn of_error(at: Location, word: &str, error: Option<Location>) -> Diagnostic {
    let message = format!("cannot allow `{word}`, which is an error");
    let mut finding = Diagnostic::new(&INVALID_ALLOW, at, message);
    if let Some(location) = error {
        finding.labels.push(Label { location, message: String::from("error reported here") });
    }
    finding.note("a tool with an error is never sent")
}

/// The finding for a comment that starts like a directive but is not valid.
pub(crate) fn unreadable(at: Location) -> Diagnostic {
    Diagnostic::new(&INVALID_ALLOW, at, "expected `deftool: allow(rule, …)`, or `deftool: skip` on a line of its own")
}

/// The finding for a `skip` that would skip only a part of a tool.
pub(crate) fn part_skipped(at: Location) -> Diagnostic {
    Diagnostic::new(&INVALID_ALLOW, at, "expected `skip` before a whole definition, found it inside one")
}
