use crate::diagnostic::{Diagnostic, rule};
use crate::spec::nearest;
use crate::text::Location;

rule! {
    /// a script's parameter that is nearly called as its argument
    ///
    /// Parameters take the arguments in order, whatever they are called, so that it works. Two spellings of one name are
    /// still mixed up sooner or later. Dashes, underscores and capitals make no difference (`userName` for `user-name`), and
    /// names that have nothing in common are taken to be meant.
    ///
    /// ```eld fails
    /// (deftool :name "weather" :description "Tell the weather."
    ///  :args ((:name "location" :type string :description "Where.")))
    /// ```
    ///
    /// ```lua scripts/weather.lua fails
    /// return function(locaton) return "fine in " .. locaton end
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "weather" :description "Tell the weather."
    ///  :args ((:name "location" :type string :description "Where.")))
    /// ```
    ///
    /// ```lua scripts/weather.lua repaired
    /// return function(location) return "fine in " .. location end
    /// ```
    pub(crate) PARAMETER_NAME, "DT424", "parameter-name", Note
}

/// Shorter names are near to too many others.
const MIN_LENGTH: usize = 4;

/// Both in order.
pub(in crate::project) fn check(
    at: Location,
    tool: &str,
    parameters: &[String],
    expected: &[&str],
) -> Option<Diagnostic> {
    let (parameter, argument) = parameters.iter().zip(expected).find(|(parameter, argument)| {
        let is_same = plain(parameter) == plain(argument);
        let is_other = expected.iter().any(|other| plain(other) == plain(parameter));
        let is_long = parameter.len().min(argument.len()) >= MIN_LENGTH;
        !is_same && !is_other && is_long && nearest(parameter, [**argument]).is_some()
    })?;
    let message = format!("the parameter `{parameter}` of `{tool}` takes the argument `{argument}`");
    Some(
        Diagnostic::new(&PARAMETER_NAME, at, message)
            .labelled("it is spelt in two ways")
            .note("call both the same, in the script or in the spec"),
    )
}

/// Without what makes no difference.
fn plain(name: &str) -> String {
    name.replace(['-', '_'], "").to_lowercase()
}
