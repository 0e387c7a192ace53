use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// an assignment to a global
    ///
    /// Every call runs in its own environment, which is discarded when the call ends. A global does not keep its value
    /// between calls. It is also slower than a local, and a misspelt one is nil instead of an error. Functions that the
    /// file defines at its top level (`function helper() … end`) are not reported.
    ///
    /// ```eld fails
    /// (deftool :name "roll" :description "Roll a die.")
    /// ```
    ///
    /// ```lua scripts/roll.lua fails
    /// return function()
    ///   result = math.random(6)
    ///   return result
    /// end
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "roll" :description "Roll a die.")
    /// ```
    ///
    /// ```lua scripts/roll.lua repaired
    /// return function()
    ///   local result = math.random(6)
    ///   return result
    /// end
    /// ```
    pub(crate) LOST_GLOBAL, "DT421", "lost-global", Warning
}

pub(crate) fn finding(at: Location, name: &str, is_taken: bool) -> Diagnostic {
    let message = format!("assignment to the global `{name}`, which is lost when the call ends");
    let finding = Diagnostic::new(&LOST_GLOBAL, at, message);
    if is_taken {
        finding.note(format!("it shadows the built-in `{name}`; use a local with another name"))
    } else {
        finding.note(format!("declare it with `local {name} = …`"))
    }
}
