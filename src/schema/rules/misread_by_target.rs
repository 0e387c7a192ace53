use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::Loss;

rule! {
    /// a schema of which a target makes something else
    ///
    /// llama.cpp samples under a grammar made of the schema. Where the grammar means something else, the model can write only what the grammar takes, and deftool refuses what the spec does not: some calls, or all, can then not be made.
    ///
    /// ```eld for-llama-cpp fails
    /// (deftool :name "rename" :description "Rename the note."
    ///  :args ((:name "title" :type string :pattern "^.+$" :description "The new title.")))
    /// ```
    ///
    /// ```eld for-llama-cpp repaired
    /// (deftool :name "rename" :description "Rename the note."
    ///  :args ((:name "title" :type string :minLength 1 :description "The new title.")))
    /// ```
    pub(crate) MISREAD_BY_TARGET, "DT507", "misread-by-target", Warning
}

/// The finding.
pub(crate) fn misread_by_target(loss: &Loss<'_>) -> Diagnostic {
    let what = loss.subject();
    loss.start(&MISREAD_BY_TARGET, format!("{} makes something else of {what}", loss.target.as_str()))
}
