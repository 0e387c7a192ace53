use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a script for an exit tool
    ///
    /// A call of an exit tool is a signal: it is recorded and ends the request, and nothing is run. What the script does has to
    /// be done by whoever reads the signal, or by a tool.
    ///
    /// ```eld fails
    /// (defexit :name "done" :description "Say that all is done.")
    /// ```
    ///
    /// ```lua scripts/done.lua fails
    /// return function() return "bye" end
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "done" :description "Say that all is done.")
    /// ```
    ///
    /// ```lua scripts/done.lua repaired
    /// return function() return "bye" end
    /// ```
    pub(crate) EXIT_TOOL_SCRIPT, "DT426", "exit-tool-script", Note
}

pub(in crate::project) fn finding(at: Location, tool: &str, file: &str) -> Diagnostic {
    Diagnostic::new(&EXIT_TOOL_SCRIPT, at, format!("`{tool}` is an exit tool, and nothing runs {file}"))
        .note("its calls are recorded and end the request; a `deftool` form is what has a script")
}
