use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::ToolLimitation;

rule! {
    /// a constraint that a target ignores
    ///
    /// The target accepts the request, but does not enforce the keyword. deftool rejects arguments that violate it,
    /// which costs another model turn. State the constraint in the `:description` too.
    ///
    /// ```eld for-ollama fails
    /// (deftool :name "search" :description "Search the notes."
    ///  :args ((:name "limit" :type integer :minimum 1 :description "How many.")))
    /// ```
    ///
    /// ```eld for-ollama repaired
    /// (deftool :name "search" :description "Search the notes."
    ///  :args ((:name "limit" :type integer :description "How many, at least 1.")))
    /// ```
    pub(crate) IGNORED_BY_TARGET, "DT505", "ignored-by-target", Warning
}

pub(crate) fn ignored_by_target(limitation: &ToolLimitation<'_>) -> Diagnostic {
    let what = limitation.subject();
    limitation.start(&IGNORED_BY_TARGET, format!("{} ignores {what}", limitation.target.as_str()))
}
