use crate::diagnostic::{Diagnostic, rule};
use crate::spec::nearest;
use crate::text::Location;

rule! {
    /// an allow or deny that names no rule
    ///
    /// It silences nothing. Rules are named by their code or their name, as `deftool rule` lists them.
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

pub(in crate::project) fn finding(at: Location, word: &str) -> Diagnostic {
    let names = super::all().into_iter().flat_map(|rule| [rule.name, rule.code]);
    let finding = Diagnostic::new(&UNKNOWN_ALLOW, at, format!("`{word}` is no rule"));
    match nearest(word, names) {
        Some(near) => finding.labelled(format!("did you mean `{near}`?")),
        None => finding.note("`deftool rule` lists them"),
    }
}

/// A comment that starts like a directive and is none.
pub(in crate::project) fn unreadable(at: Location) -> Diagnostic {
    Diagnostic::new(&UNKNOWN_ALLOW, at, "expected `deftool: allow(rule, …)`, or `deftool: skip` on a line of its own")
}

/// A comment that would leave out a part of a form.
pub(in crate::project) fn part_skipped(at: Location) -> Diagnostic {
    Diagnostic::new(&UNKNOWN_ALLOW, at, "`skip` stands before a whole form, and not inside of one")
}
