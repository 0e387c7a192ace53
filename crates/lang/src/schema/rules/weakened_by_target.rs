use crate::diagnostic::{Diagnostic, rule};
use crate::schema::target::ToolLimitation;

rule! {
    /// a constraint that a target enforces only in part
    ///
    /// The model may generate arguments that match the target's interpretation but not the spec. The notes describe the
    /// difference and name the component that still enforces the full constraint.
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

pub(crate) fn weakened_by_target(limitation: &ToolLimitation<'_>) -> Diagnostic {
    let what = limitation.subject();
    limitation.start(&WEAKENED_BY_TARGET, format!("{} enforces {what} only in part", limitation.target.as_str()))
}
