use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::Loss;

rule! {
    /// a constraint that is left out for a target
    ///
    /// The target would refuse it, and the rest of the schema means the same without it. The model is not told of it, so it may write arguments that deftool then refuses; say it in the `:description`, too.
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

/// The finding.
pub(crate) fn dropped_by_target(loss: &Loss<'_>) -> Diagnostic {
    let what = loss.subject();
    loss.start(&DROPPED_BY_TARGET, format!("{what} is left out for {}", loss.target.as_str()))
}
