use crate::diagnostic::rule;

rule! {
    /// a permission that does not exist
    pub(crate) ALLOW_UNKNOWN, "DT114", "unknown-permission", Error
}
