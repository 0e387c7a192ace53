use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::ToolLimitation;

rule! {
    /// a schema that a target interprets differently
    ///
    /// llama.cpp converts the schema to a grammar that constrains sampling. If the grammar differs from the schema, the
    /// model can generate only what the grammar allows, and deftool rejects what the spec does not allow. Some or all
    /// calls then fail.
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

pub(crate) fn misread_by_target(limitation: &ToolLimitation<'_>) -> Diagnostic {
    let what = limitation.subject();
    limitation.start(&MISREAD_BY_TARGET, format!("{} interprets {what} differently", limitation.target.as_str()))
}
