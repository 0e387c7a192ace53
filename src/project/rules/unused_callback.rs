use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// an asynchronous tool that never mentions its callback
    ///
    /// With `:async t` a call ends when the callback is called, and what the function returns is thrown away. A function that
    /// does nothing with its callback answers no call.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time." :async t)
    /// ```
    ///
    /// ```lua scripts/now.lua fails
    /// return function(callback) return time.iso() end
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time." :async t)
    /// ```
    ///
    /// ```lua scripts/now.lua repaired
    /// return function(callback) callback(time.iso()) end
    /// ```
    pub(crate) UNUSED_CALLBACK, "DT425", "unused-callback", Warning
}

pub(in crate::project) fn finding(at: Location, tool: &str, callback: &str) -> Diagnostic {
    Diagnostic::new(&UNUSED_CALLBACK, at, format!("`{tool}` never mentions its callback, `{callback}`"))
        .note(format!("call `{callback}(result)`, or take `:async t` out of the spec and the parameter with it"))
}
