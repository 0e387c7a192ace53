use crate::diagnostic::{Diagnostic, rule};
use crate::text::{Location, Span};

rule! {
    /// tools that a worker never calls
    ///
    /// With a tool budget of 0, normal tools are never offered to the model. Exit tools do not use the budget.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time.")
    /// (defworker :name "local" :tools ["now"] :tool-budget 0)
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// (defworker :name "local" :tools ["now"] :tool-budget 3)
    /// ```
    pub(crate) TOOLS_WITHOUT_BUDGET, "DT309", "tools-without-budget", Warning
}

/// `at` is the budget, `tools` the list.
pub(in crate::spec) fn finding(at: Location, tools: Span) -> Diagnostic {
    Diagnostic::new(&TOOLS_WITHOUT_BUDGET, at, "with a `:tool-budget` of 0, none of the `:tools` is ever called")
        .with_label_at(tools, "listed here")
}
