use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// what a definition says beside its arguments and a spec does not
    ///
    /// Which arguments a model may send is not touched by it: titles, caching, output schemas, hints to a client. A spec has no key for it, so it is gone when
    /// the spec is compiled again.
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

/// One finding for all of a tool: where each stands and its name.
pub(crate) fn finding(at: Location, keys: &[(String, Span)]) -> Diagnostic {
    let message = match keys {
        [_] => format!("{} is left out; a spec has no place for it", names(keys)),
        _ => format!("{} are left out; a spec has no place for them", names(keys)),
    };
    let finding = Diagnostic::new(&LEFT_OUT, at, message);
    let others = keys.iter().skip(1);
    others.fold(finding, |finding, (key, span)| finding.and_at(*span, format!("`{key}` is left out, too")))
}

/// `` `a`, `b` and `c` ``
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
