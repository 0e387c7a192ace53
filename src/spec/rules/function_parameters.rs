use std::collections::HashMap;

use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, count};

rule! {
    /// a :function that does not take the tool's arguments
    ///
    /// gptel and llm.el call the function with all arguments in the order of `:args`, nil for one that the model left out, and with
    /// `:async t` a callback before them. Another number of parameters is an error of Emacs at the first call; parameters that are
    /// named as other arguments are swapped, and nothing says so but the results.
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

/// `names`: of the parameters, the first `required` of which must be given; `expected`: what the function is called with.
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
        format!("the function of `{tool}` takes {takes} and is called with {}", count(given, "argument"))
    } else {
        let (name, argument) = swapped(names, expected)?;
        format!("the parameter `{name}` of `{tool}` is given the argument `{argument}`")
    };
    let finding = Diagnostic::new(&FUNCTION_PARAMETERS, at, message)
        .note(format!("write `(lambda ({}) …)`", expected.join(" ")));
    Some(if expected.first() == Some(&"callback") {
        finding.note("the spec says `:async t`, so the callback comes first")
    } else {
        finding
    })
}

/// The first parameter that is named as the argument of another place, and the argument it gets. The same name may be
/// written with dashes, underscores or capitals; one that is not used may begin with an underscore.
pub(crate) fn swapped<'a>(names: &'a [String], expected: &[&'a str]) -> Option<(&'a str, &'a str)> {
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
