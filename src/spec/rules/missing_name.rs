use crate::diagnostic::rule;

rule! {
    /// a form without :name
    pub(crate) MISSING_NAME, "DT109", "missing-name", Error
}
