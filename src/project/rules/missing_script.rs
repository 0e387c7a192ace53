use crate::diagnostic::rule;

rule! {
    /// a tool without its script
    pub(crate) MISSING_SCRIPT, "DT401", "missing-script", Error
}
