use crate::diagnostic::rule;

rule! {
    /// an argument without :type
    pub(crate) MISSING_TYPE, "DT203", "missing-type", Warning
}
