use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::spec::nearest;
use deftool_lang::text::Location;

rule! {
    /// an allow or deny of an unknown rule
    ///
    /// It has no effect. Use the code or the name of a rule. `deftool rule` lists all rules.
    ///
    /// ```eld fails
    /// (deflint :deny [mising-description])
    /// ```
    ///
    /// ```eld repaired
    /// (deflint :deny [missing-description])
    /// ```
    pub(crate) UNKNOWN_ALLOW, "DT125", "unknown-allow", Warning
}

pub(crate) fn finding(at: Location, word: &str) -> Diagnostic {
    let names = super::all().into_iter().flat_map(|rule| [rule.name, rule.code]);
    let finding = Diagnostic::new(&UNKNOWN_ALLOW, at, format!("unknown rule `{word}`"));
    match nearest(word, names) {
        Some(near) => finding.labelled(format!("did you mean `{near}`?")),
        None => finding.note("`deftool rule` lists all rules"),
    }
}

/// The finding for a comment that starts like a directive but is not valid.
pub(crate) fn unreadable(at: Location) -> Diagnostic {
    Diagnostic::new(&UNKNOWN_ALLOW, at, "expected `deftool: allow(rule, …)`, or `deftool: skip` on a line of its own")
}

/// The finding for a `skip` that would skip only a part of a tool.
pub(crate) fn part_skipped(at: Location) -> Diagnostic {
    Diagnostic::new(&UNKNOWN_ALLOW, at, "expected `skip` before a whole definition, found it inside one")
}
