use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a script that sets a global
    ///
    /// Each call runs in an environment of its own, which is gone when the call ends: a global keeps nothing from one call to
    /// the next. Within a call it is slower than a local, and a misspelt one is nil and not an error. Functions that the file
    /// defines where it is loaded (`function helper() … end`) are not told.
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

pub(in crate::project) fn finding(at: Location, name: &str, is_taken: bool) -> Diagnostic {
    let message = format!("`{name}` is set as a global, which is lost when the call ends");
    let finding = Diagnostic::new(&LOST_GLOBAL, at, message);
    if is_taken {
        finding.note(format!("it hides the `{name}` that every script has; give a local another name"))
    } else {
        finding.note(format!("write `local {name} = …` where it is first set"))
    }
}
