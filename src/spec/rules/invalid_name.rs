use crate::diagnostic::rule;

rule! {
    /// a name that APIs refuse
    pub(crate) INVALID_NAME, "DT110", "invalid-name", Error
}
