use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::Loss;

rule! {
    /// a constraint of which a target keeps only a part
    ///
    /// What the model writes may keep to the target's reading and not to the spec's. The notes say what is lost and who still holds a call to it.
    ///
    /// ```eld for-openai-strict fails
    /// (deftool :name "find" :description "Find a note."
    ///  :args ((:name "by" :oneOf [(:type string) (:type integer)] :description "Its title or number.")))
    /// ```
    ///
    /// ```eld for-openai-strict repaired
    /// (deftool :name "find" :description "Find a note."
    ///  :args ((:name "by" :anyOf [(:type string) (:type integer)] :description "Its title or number.")))
    /// ```
    pub(crate) WEAKENED_BY_TARGET, "DT506", "weakened-by-target", Warning
}

/// The finding.
pub(crate) fn weakened_by_target(loss: &Loss<'_>) -> Diagnostic {
    let what = loss.subject();
    loss.start(&WEAKENED_BY_TARGET, format!("{} keeps only a part of {what}", loss.target.as_str()))
}
