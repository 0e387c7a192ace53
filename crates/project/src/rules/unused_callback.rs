use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// an asynchronous tool that does not use its callback
    ///
    /// With `:async t` a call ends when the callback is called, and the return value of the function is ignored. A
    /// function that does not use its callback never answers.
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

pub(crate) fn finding(at: Location, tool: &str, callback: &str) -> Diagnostic {
    Diagnostic::new(&UNUSED_CALLBACK, at, format!("`{tool}` never uses its callback `{callback}`"))
        .note(format!("call `{callback}(result)`, or remove `:async t` and the parameter"))
}
