use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::text::Location;

rule! {
    /// a script for an exit tool
    ///
    /// A call of an exit tool is a signal. It is recorded, and nothing is run. Do the work in the
    /// program that receives the signal, or in a normal tool.
    ///
    /// ```eld fails
    /// (defexit :name "done" :description "Report that the task is done.")
    /// ```
    ///
    /// ```lua scripts/done.lua fails
    /// return function() return "bye" end
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "done" :description "Report that the task is done.")
    /// ```
    ///
    /// ```lua scripts/done.lua repaired
    /// return function() return "bye" end
    /// ```
    pub(crate) EXIT_TOOL_SCRIPT, "DT426", "exit-tool-script", Note
}

pub(crate) fn finding(at: Location, tool: &str, file: &str) -> Diagnostic {
    Diagnostic::new(&EXIT_TOOL_SCRIPT, at, format!("unused script {file}: `{tool}` is an exit tool"))
        .note("calls of exit tools are only recorded and end the request; to run a script, use `deftool`")
}
