use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::spec::rules::swapped_parameter;
use deftool_lang::text::Location;

rule! {
    /// a parameter that is named after another argument
    ///
    /// Parameters receive the arguments in the order of `:args`, whatever their names. A parameter with the name of
    /// another argument means that the two are swapped, which no other check detects.
    ///
    /// ```eld fails
    /// (deftool :name "copy" :description "Copy a note."
    ///  :args ((:name "from" :type string :description "Which.")
    ///         (:name "to" :type string :description "Where to.")))
    /// ```
    ///
    /// ```lua scripts/copy.lua fails
    /// return function(to, from) return to .. from end
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "copy" :description "Copy a note."
    ///  :args ((:name "from" :type string :description "Which.")
    ///         (:name "to" :type string :description "Where to.")))
    /// ```
    ///
    /// ```lua scripts/copy.lua repaired
    /// return function(from, to) return to .. from end
    /// ```
    pub(crate) SWAPPED_PARAMETERS, "DT409", "swapped-parameters", Warning
}

/// Compares the parameters with the expected ones, both in order.
pub(crate) fn check(
    at: Location,
    tool: &str,
    parameters: &[String],
    expected: &[&str],
) -> Option<Diagnostic> {
    let (parameter, given) = swapped_parameter(parameters, expected)?;
    let message = format!("the parameter `{parameter}` of `{tool}` receives the argument `{given}`");
    let finding = Diagnostic::new(&SWAPPED_PARAMETERS, at, message)
        .note(format!("write `function({})`", expected.join(", ")));
    Some(if expected.first() == Some(&"callback") {
        finding.note("the spec has `:async t`, so the callback comes first")
    } else {
        finding
    })
}
