use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::ToolLimitation;

rule! {
    /// a constraint that is dropped for a target
    ///
    /// The target would reject the constraint. Dropping it does not change the meaning of the rest of the schema. The
    /// model does not see the constraint, so it may generate arguments that deftool then rejects. State it in the
    /// `:description` too.
    ///
    /// ```eld for-openai-strict fails
    /// (deftool :name "rename" :description "Rename the note."
    ///  :args ((:name "title" :type string :maxLength 80 :description "The new title.")))
    /// ```
    ///
    /// ```eld for-openai-strict repaired
    /// (deftool :name "rename" :description "Rename the note."
    ///  :args ((:name "title" :type string :description "The new title, at most 80 characters.")))
    /// ```
    pub(crate) DROPPED_BY_TARGET, "DT503", "dropped-by-target", Warning
}

pub(crate) fn dropped_by_target(limitation: &ToolLimitation<'_>) -> Diagnostic {
    let what = limitation.subject();
    limitation.start(&DROPPED_BY_TARGET, format!("{what} is dropped for {}", limitation.target.as_str()))
}
