use crate::diagnostic::rule;

rule! {
    /// a :type that JSON Schema does not have
    pub(crate) UNKNOWN_TYPE, "DT204", "unknown-type", Error
}
