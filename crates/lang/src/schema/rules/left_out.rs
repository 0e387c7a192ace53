use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// a key of an imported definition that a spec does not support
    ///
    /// Titles, caching options, output schemas and client hints do not affect which arguments are valid. A spec has no
    /// key for them, so they are missing when the spec is compiled again.
    ///
    /// ```json fails
    /// {"name": "now", "description": "Tell the time.", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}
    /// ```
    ///
    /// ```json repaired
    /// {"name": "now", "description": "Tell the time.", "input_schema": {"type": "object"}}
    /// ```
    pub(crate) LEFT_OUT, "DT607", "left-out", Note
}

/// Returns one finding for all unsupported keys of a tool.
pub(crate) fn finding(at: Location, keys: &[(String, Span)]) -> Diagnostic {
    let message = match keys {
        [_] => format!("{} is not supported in a spec; ignored", names(keys)),
        _ => format!("{} are not supported in a spec; ignored", names(keys)),
    };
    let finding = Diagnostic::new(&LEFT_OUT, at, message);
    let others = keys.iter().skip(1);
    others.fold(finding, |finding, (key, span)| finding.with_label_at(*span, format!("`{key}` is also ignored")))
}

/// The `:confirm` of an imported form is a function.
pub(crate) fn confirm_function(at: Location) -> Diagnostic {
    let message = "this function is not imported: the spec asks before every call; list the calls in `:confirm`";
    Diagnostic::new(&LEFT_OUT, at, message)
}

/// `number` comments of imported forms are lost; the first one is at `at`.
pub(crate) fn comments(at: Location, number: usize) -> Diagnostic {
    let message = match number {
        1 => String::from("this comment is not imported"),
        _ => format!("{number} comments are not imported; this is the first"),
    };
    Diagnostic::new(&LEFT_OUT, at, message)
}

/// Returns the keys as a list: `` `a`, `b` and `c` ``.
pub(super) fn names(keys: &[(String, Span)]) -> String {
    let mut names = String::new();
    for (index, (key, _)) in keys.iter().enumerate() {
        names.push_str(match (index, index + 1 == keys.len()) {
            (0, _) => "",
            (_, true) => " and ",
            (_, false) => ", ",
        });
        names.extend(["`", key, "`"]);
    }
    names
}
