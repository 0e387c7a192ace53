use std::collections::HashMap;

use crate::diagnostic::{Diagnostic, Severity, rule};
use crate::text::{Location, Span, count};

rule! {
    /// code where a constant is required
    ///
    /// Specs are data: nothing in them is executed. Calls of `quote`, `list`, `vector`, `cons`, `append`, `concat` and
    /// `format`, and backquoted forms, are folded if all their arguments are constants.
    ///
    /// In Emacs Lisp, deftool also folds functions without side effects such as `string-join`, `mapconcat` and `upcase`,
    /// conditionals, `let`, and variables that the file assigns once, at top level, and does not bind or change
    /// elsewhere. Anything else has a value only in a running Emacs. All such values of a form, and all that the same
    /// function or variable has in a file, are reported in one warning. The rest of the tool is checked, and `compile` omits
    /// the tool.
    ///
    /// ```el fails
    /// (gptel-make-tool :name "notes" :description (concat "Search " my-folder) :function #'my-search)
    /// ```
    ///
    /// ```el repaired
    /// (gptel-make-tool :name "notes" :description (concat "Search " "~/notes") :function #'my-search)
    /// ```
    pub NOT_A_CONSTANT, "DT102", "not-a-constant", Error
}

/// Merges the unknown values of one Emacs Lisp form, which are warnings, into one finding.
pub(crate) fn merge_unknown(findings: &mut Vec<Diagnostic>) -> bool {
    let is_unknown =
        |finding: &Diagnostic| *finding.rule == NOT_A_CONSTANT && finding.severity == Severity::Warning;
    let mut count = 0;
    let first = findings.iter().position(is_unknown);
    findings.retain(|finding| {
        count += usize::from(is_unknown(finding));
        count <= 1 || !is_unknown(finding)
    });
    let Some(finding) = first.and_then(|first| findings.get_mut(first)) else { return false };
    finding.notes = vec![String::from(match count {
        1 => "the value is only available in a running Emacs; the rest of the form is checked, and `compile` omits the tool",
        _ => "this value and others in the form are only available in a running Emacs; the rest is checked, and `compile` omits the tool",
    })];
    true
}

/// Merges the unknown values of several Emacs Lisp forms that the same function or variable has, such as a function that
/// makes names.
pub(crate) fn merge_causes(findings: &mut Vec<Diagnostic>) {
    let cause = |finding: &Diagnostic| {
        let is_unknown = *finding.rule == NOT_A_CONSTANT && finding.severity == Severity::Warning;
        let named = finding.label.as_ref().unwrap_or(&finding.message);
        let is_named = finding.label.is_some() || named.starts_with(VARIABLE);
        (is_unknown && is_named).then(|| named.clone())
    };
    let mut counts: HashMap<String, usize> = HashMap::new();
    for cause in findings.iter().filter_map(cause) {
        *counts.entry(cause).or_default() += 1;
    }
    findings.retain_mut(|finding| {
        let Some(cause) = cause(finding) else { return true };
        // Removed from the counts: a later form has the same cause.
        let Some(number) = counts.remove(&cause) else { return false };
        if number > 1 {
            finding.notes.push(format!("the same applies to {} of this file", count(number - 1, "other form")));
        }
        true
    });
}

/// The start of the message about a variable.
const VARIABLE: &str = "not a constant: the variable";

const NOTE: &str = "specs are data and never executed; write the value itself, or put `;; deftool: skip` before the form to ignore it";

/// Reports a call without a constant value. `function` is the head of the call, if the head is a symbol; `is_folded`:
/// whether other calls of it are folded.
pub(in crate::syntax) fn call(
    at: Location,
    text: &str,
    function: Option<&str>,
    is_folded: bool,
) -> Diagnostic {
    let finding = Diagnostic::new(&NOT_A_CONSTANT, at, format!("not a constant: `{}`", excerpt(text)));
    match function {
        Some(name) if is_folded => {
            finding.note(format!("`{name}` cannot be folded with these arguments"))
        }
        Some("lambda" | "cl-function") => {
            finding.note("a function is only allowed as the value of `:function`")
        }
        Some(name) => finding.labelled(format!("`{name}` is not folded")).note(NOTE),
        None => finding.note(NOTE),
    }
}

pub(in crate::syntax) fn variable(at: Location, name: &str) -> Diagnostic {
    let message = format!("{VARIABLE} `{}`", excerpt(name));
    Diagnostic::new(&NOT_A_CONSTANT, at, message).note(NOTE)
}

/// Reports `'(list …)`; `quote` is the span before the list.
pub(in crate::syntax) fn quoted_call(at: Location, quote: Span, function: &str) -> Diagnostic {
    let message = format!("the quote turns this call to `{function}` into data");
    Diagnostic::new(&NOT_A_CONSTANT, at, message).fixed_by("remove the quote", quote, "")
}

/// Reports a call in quoted data, which is not evaluated.
pub(in crate::syntax) fn in_data(at: Location, function: &str) -> Diagnostic {
    let message = format!("`{function}` is not called in quoted data");
    Diagnostic::new(&NOT_A_CONSTANT, at, message)
        .note(format!("use a backquote and a comma, `` `(… ,({function} …)) ``, to call it"))
}

/// Reports reader syntax without a constant value, such as `#s(…)`.
pub(in crate::syntax) fn reader_syntax(at: Location, text: &str) -> Diagnostic {
    Diagnostic::new(&NOT_A_CONSTANT, at, format!("not a constant: `{}`", excerpt(text)))
        .note("this syntax has no JSON form")
}

pub(in crate::syntax) fn comma(at: Location) -> Diagnostic {
    Diagnostic::new(&NOT_A_CONSTANT, at, "a backquote or comma is not a constant here")
}

pub(in crate::syntax) fn splice(at: Location, found: &str) -> Diagnostic {
    Diagnostic::new(&NOT_A_CONSTANT, at, format!("`,@` requires a list, found {found}"))
}

pub(in crate::syntax) fn wrong_argument(
    at: Location,
    function: &str,
    expected: &str,
    found: &str,
) -> Diagnostic {
    let message = format!("not a constant: `{function}` takes {expected}, found {found}");
    Diagnostic::new(&NOT_A_CONSTANT, at, message).note("Emacs rejects this call or interprets it differently")
}

pub(in crate::syntax) fn because(at: Location, why: &str) -> Diagnostic {
    Diagnostic::new(&NOT_A_CONSTANT, at, format!("not a constant: {why}")).note("write the text itself")
}

/// Returns the start of a form on one line.
fn excerpt(text: &str) -> String {
    let one_line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match one_line.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", one_line.get(..end).unwrap_or("")),
        None => one_line,
    }
}
