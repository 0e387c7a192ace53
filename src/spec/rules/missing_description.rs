use crate::diagnostic::rule;

rule! {
    /// a tool or argument without a description
    pub(crate) MISSING_DESCRIPTION, "DT112", "missing-description", Warning
}
