use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, count};

rule! {
    /// a script whose function does not take the tool's arguments
    ///
    /// Arguments arrive in the order of `:args`, one parameter each, a missing optional one as nil; with `:async t` a callback
    /// comes first. A function that takes fewer loses some of what the model wrote, one that takes more waits for what
    /// never comes.
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

/// `expected`: the parameters that the function should have.
pub(in crate::project) fn finding(
    at: Location,
    tool: &str,
    found: usize,
    expected: &[&str],
    is_async: bool,
) -> Diagnostic {
    let message = format!(
        "the function of `{tool}` takes {} and the spec gives {}",
        count(found, "parameter"),
        count(expected.len(), "argument"),
    );
    let finding =
        Diagnostic::new(&SCRIPT_ARITY, at, message).note(format!("write `function({})`", expected.join(", ")));
    if is_async { finding.note("the spec says `:async t`, so the callback comes first") } else { finding }
}
