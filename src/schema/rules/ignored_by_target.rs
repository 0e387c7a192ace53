use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::Loss;

rule! {
    /// a constraint that a target takes and does nothing with
    ///
    /// The request goes through, and nothing holds the model to the keyword while it writes. deftool refuses arguments that break it, which costs a round trip; what the model should keep to stands best in the `:description`, too.
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

/// The finding.
pub(crate) fn ignored_by_target(loss: &Loss<'_>) -> Diagnostic {
    let what = loss.subject();
    loss.start(&IGNORED_BY_TARGET, format!("{} ignores {what}", loss.target.as_str()))
}
