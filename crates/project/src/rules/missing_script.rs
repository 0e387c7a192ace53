use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::syntax::quoted;
use deftool_lang::text::Location;

rule! {
    /// a tool without a script
    ///
    /// A tool is implemented by the script `scripts/NAME.lua` beside `specs/`, or by the file that `:script` names. A
    /// tool without a script compiles, but is not offered to a model, because every call would fail.
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

/// `near`: an unused file with a similar name. `is_named`: whether the spec names the script.
pub(crate) fn finding(
    at: Location,
    message: &str,
    near: Option<&str>,
    is_named: bool,
) -> Diagnostic {
    let finding = Diagnostic::new(&MISSING_SCRIPT, at, message)
        .note("a script returns a function that takes the arguments in `:args` order");
    match near {
        Some(near) if is_named => finding.did_you_mean(at.span, quoted(near)),
        Some(near) => finding.labelled(format!("found the similar name {near}")),
        None => finding,
    }
}
