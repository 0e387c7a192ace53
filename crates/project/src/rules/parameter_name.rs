use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::spec::nearest;
use deftool_lang::text::Location;

rule! {
    /// a parameter whose name differs slightly from its argument
    ///
    /// Parameters receive the arguments in order, whatever their names, so the script works. But two spellings of one
    /// name are a likely source of mistakes. Differences in dashes, underscores and case (`userName` for `user-name`)
    /// and completely different names are not reported.
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

/// Minimum length of a name. Shorter names are similar to too many others.
const MIN_LENGTH: usize = 4;

/// Compares the parameters with the expected ones, both in order.
pub(crate) fn check(
    at: Location,
    tool: &str,
    parameters: &[String],
    expected: &[&str],
) -> Option<Diagnostic> {
    let different = |(parameter, argument): &(&String, &&str)| parameter != argument;
    let mut pairs = parameters.iter().zip(expected).filter(different);
    let (parameter, argument) = pairs.find(|(parameter, argument)| {
        let is_same = plain(parameter) == plain(argument);
        let is_other = expected.iter().any(|other| plain(other) == plain(parameter));
        let is_long = parameter.len().min(argument.len()) >= MIN_LENGTH;
        !is_same && !is_other && is_long && nearest(parameter, [**argument]).is_some()
    })?;
    let message = format!("the parameter `{parameter}` of `{tool}` receives the argument `{argument}`");
    Some(
        Diagnostic::new(&PARAMETER_NAME, at, message)
            .labelled("different spelling")
            .note("use the same name in the script and the spec"),
    )
}

/// Normalizes case, dashes and underscores.
fn plain(name: &str) -> String {
    name.replace(['-', '_'], "").to_lowercase()
}
