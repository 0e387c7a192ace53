use crate::diagnostic::{Diagnostic, rule};
use crate::syntax::quoted;
use crate::text::Location;

rule! {
    /// a tool without its script
    ///
    /// A script implements the tool: `scripts/NAME.lua` beside `specs/`, or what `:script` names. Without it the tool compiles,
    /// and is offered to no model, since every call of it would fail.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time.")
    /// (deftool :name "today" :description "Tell the date.")
    /// ```
    ///
    /// ```lua scripts/today.lua fails
    /// return function() return "Friday" end
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    ///
    /// ```lua scripts/now.lua repaired
    /// return function() return "noon" end
    /// ```
    pub(crate) MISSING_SCRIPT, "DT401", "missing-script", Error
}

/// `near`: a file that may have been meant; `is_named`: the spec names the script.
pub(in crate::project) fn finding(
    at: Location,
    message: &str,
    near: Option<&str>,
    is_named: bool,
) -> Diagnostic {
    let finding = Diagnostic::new(&MISSING_SCRIPT, at, message)
        .note("a script returns one function that takes the arguments in :args order");
    match near {
        Some(near) if is_named => finding.meant(at.span, quoted(near)),
        Some(near) => finding.labelled(format!("there is {near}")),
        None => finding,
    }
}
