use std::collections::HashMap;

use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, count};

rule! {
    /// a :function with the wrong parameters for the tool's arguments
    ///
    /// gptel and llm.el call the function with all arguments in the order of `:args`, with nil for omitted ones, and
    /// with a callback first for `:async t`. A wrong number of parameters causes an error at the first call. A
    /// parameter with the name of a different argument silently receives the wrong value.
    ///
    /// ```el fails
    /// (gptel-make-tool :name "copy" :description "Copy a note."
    ///  :function (lambda (from) (ignore from))
    ///  :args (list '(:name "from" :type string :description "Which.")
    ///              '(:name "to" :type string :description "Where to.")))
    /// ```
    ///
    /// ```el repaired
    /// (gptel-make-tool :name "copy" :description "Copy a note."
    ///  :function (lambda (from to) (ignore from to))
    ///  :args (list '(:name "from" :type string :description "Which.")
    ///              '(:name "to" :type string :description "Where to.")))
    /// ```
    pub(crate) FUNCTION_PARAMETERS, "DT131", "function-parameters", Warning
}

/// `names` are the parameters, of which the first `required` are mandatory; `expected` are the arguments of the call.
pub(in crate::spec) fn check(
    at: Location,
    tool: &str,
    names: &[String],
    required: usize,
    has_rest: bool,
    expected: &[&str],
) -> Option<Diagnostic> {
    let given = expected.len();
    let message = if given < required || (given > names.len() && !has_rest) {
        let takes = if given < required { required } else { names.len() };
        let takes = count(takes, "parameter");
        format!("the function of `{tool}` takes {takes}, but is called with {}", count(given, "argument"))
    } else {
        let (name, argument) = swapped_parameter(names, expected)?;
        format!("the parameter `{name}` of `{tool}` receives the argument `{argument}`")
    };
    let finding = Diagnostic::new(&FUNCTION_PARAMETERS, at, message)
        .note(format!("write `(lambda ({}) …)`", expected.join(" ")));
    Some(if expected.first() == Some(&"callback") {
        finding.note("with `:async t`, the callback comes first")
    } else {
        finding
    })
}

/// Returns the first parameter with the name of an argument in another position, and the argument that it receives.
/// Dashes, underscores and case are ignored; an unused parameter may start with an underscore.
pub fn swapped_parameter<'a>(names: &'a [String], expected: &[&'a str]) -> Option<(&'a str, &'a str)> {
    if names.iter().zip(expected).all(|(name, argument)| name == argument) {
        return None;
    }
    let plain = |name: &str| name.replace(['-', '_'], "").to_lowercase();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (place, name) in expected.iter().enumerate() {
        places.entry(plain(name)).or_insert(place);
    }
    names.iter().zip(expected).enumerate().find_map(|(index, (name, argument))| {
        let word = plain(name);
        let place = *places.get(&word)?;
        (!word.is_empty() && place != index).then_some((name.as_str(), *argument))
    })
}
