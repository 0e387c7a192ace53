use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a script whose parameters are named as other arguments
    ///
    /// Arguments arrive in the order of `:args`, whatever the parameters are called. Where a parameter has the name of another
    /// argument, the two are swapped, and nothing says so but the results.
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

/// Both in order; the same name may be written with dashes, underscores or capitals.
pub(in crate::project) fn check(
    at: Location,
    tool: &str,
    parameters: &[String],
    expected: &[&str],
) -> Option<Diagnostic> {
    let plain = |name: &str| name.replace(['-', '_'], "").to_lowercase();
    let expected_plain: Vec<String> = expected.iter().map(|name| plain(name)).collect();
    let misplaced = parameters.iter().enumerate().find(|(index, parameter)| {
        let parameter = plain(parameter);
        let place = expected_plain.iter().position(|name| *name == parameter);
        !parameter.is_empty() && place.is_some_and(|place| place != *index)
    });
    let (index, parameter) = misplaced?;
    let given = expected.get(index).copied().unwrap_or_default();
    let message = format!("the parameter `{parameter}` of `{tool}` is given the argument `{given}`");
    let finding = Diagnostic::new(&SWAPPED_PARAMETERS, at, message)
        .note(format!("write `function({})`", expected.join(", ")));
    Some(if expected.first() == Some(&"callback") {
        finding.note("the spec says `:async t`, so the callback comes first")
    } else {
        finding
    })
}
