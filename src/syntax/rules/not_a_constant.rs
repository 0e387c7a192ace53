use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// code where a constant is needed
    ///
    /// Specs are data: nothing in them is executed, neither here nor by whoever reads them. `quote`, `list`, `vector`, `cons`,
    /// `append`, `concat`, `format` and backquote are folded where all their arguments are constants; anything else has
    /// a value only inside of a running Emacs.
    ///
    /// ```el fails
    /// (gptel-make-tool :name "notes" :description (concat "Search " my-folder) :function #'my-search)
    /// ```
    ///
    /// ```el repaired
    /// (gptel-make-tool :name "notes" :description (concat "Search " "~/notes") :function #'my-search)
    /// ```
    pub(crate) NOT_A_CONSTANT, "DT102", "not-a-constant", Error
}

const NOTE: &str = "specs are data and never executed; write the value itself, or leave the form out with `;; deftool: skip` before it";

/// A call that is not folded, of `function` where it has a name.
pub(in crate::syntax) fn call(at: Location, text: &str, function: Option<&str>) -> Diagnostic {
    let finding = Diagnostic::new(&NOT_A_CONSTANT, at, format!("not a constant: `{}`", excerpt(text)));
    match function {
        // One of the folded, called in a way that has no value.
        Some(name) if crate::syntax::fold_calls::FUNCTIONS.contains(&name) => {
            finding.note(format!("`{name}` is folded, but not with these arguments"))
        }
        Some("lambda" | "cl-function") => finding.note("a function belongs under `:function`"),
        Some(name) => finding.labelled(format!("`{name}` is not folded")).note(NOTE),
        None => finding.note(NOTE),
    }
}

pub(in crate::syntax) fn variable(at: Location, name: &str) -> Diagnostic {
    let message = format!("not a constant: the variable `{}`", excerpt(name));
    Diagnostic::new(&NOT_A_CONSTANT, at, message).note(NOTE)
}

/// `'(list …)`; `quote` is what stands before it.
pub(in crate::syntax) fn quoted_call(at: Location, quote: Span, function: &str) -> Diagnostic {
    let message = format!("`{function}` under a quote is data, not a call");
    Diagnostic::new(&NOT_A_CONSTANT, at, message).fixed_by("remove the quote", quote, "")
}

/// A call among data, where nothing is called.
pub(in crate::syntax) fn in_data(at: Location, function: &str) -> Diagnostic {
    let message = format!("`{function}` is not called in quoted data; use a backquote and a comma");
    Diagnostic::new(&NOT_A_CONSTANT, at, message)
        .note(format!("in `` `(… ,({function} …)) `` it is called, in `'(…)` and `[…]` it is an element of a list"))
}

/// Reader syntax of which no constant is made, as `#s(…)`.
pub(in crate::syntax) fn reader_syntax(at: Location, text: &str) -> Diagnostic {
    Diagnostic::new(&NOT_A_CONSTANT, at, format!("not a constant: `{}`", excerpt(text)))
        .note("JSON has no form for it")
}

pub(in crate::syntax) fn comma(at: Location) -> Diagnostic {
    Diagnostic::new(&NOT_A_CONSTANT, at, "a backquote or comma has no constant meaning here")
}

pub(in crate::syntax) fn splice(at: Location, found: &str) -> Diagnostic {
    Diagnostic::new(&NOT_A_CONSTANT, at, format!("`,@` splices a list, and this is {found}"))
}

pub(in crate::syntax) fn wrong_argument(
    at: Location,
    function: &str,
    expected: &str,
    found: &str,
) -> Diagnostic {
    let message = format!("not a constant: `{function}` takes {expected}, found {found}");
    Diagnostic::new(&NOT_A_CONSTANT, at, message).note("Emacs, too, refuses it or takes something else")
}

pub(in crate::syntax) fn because(at: Location, why: &str) -> Diagnostic {
    Diagnostic::new(&NOT_A_CONSTANT, at, format!("not a constant: {why}")).note("write the text itself")
}

/// The start of a form, on one line, for a message.
fn excerpt(text: &str) -> String {
    let one_line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match one_line.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", one_line.get(..end).unwrap_or("")),
        None => one_line,
    }
}
