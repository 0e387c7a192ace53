use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::{Location, count};

rule! {
    /// a script with the wrong number of parameters
    ///
    /// The function receives one parameter per argument, in the order of `:args`. A missing optional argument is nil.
    /// With `:async t` a callback comes first. A function with fewer parameters ignores arguments; one with more has
    /// parameters that are always nil.
    ///
    /// ```eld fails
    /// (deftool :name "greet" :description "Greet someone."
    ///  :args ((:name "who" :type string :description "Whom.")))
    /// ```
    ///
    /// ```lua scripts/greet.lua fails
    /// return function() return "hello" end
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "greet" :description "Greet someone."
    ///  :args ((:name "who" :type string :description "Whom.")))
    /// ```
    ///
    /// ```lua scripts/greet.lua repaired
    /// return function(who) return "hello " .. who end
    /// ```
    pub(crate) SCRIPT_ARITY, "DT403", "script-arity", Error
}

/// `expected`: the expected parameters.
pub(crate) fn finding(
    at: Location,
    tool: &str,
    found: usize,
    expected: &[&str],
    is_async: bool,
) -> Diagnostic {
    let message = format!(
        "the function of `{tool}` takes {}, but the spec has {}",
        count(found, "parameter"),
        count(expected.len(), "argument"),
    );
    let finding =
        Diagnostic::new(&SCRIPT_ARITY, at, message).note(format!("write `function({})`", expected.join(", ")));
    if is_async { finding.note("the spec has `:async t`, so the callback comes first") } else { finding }
}
