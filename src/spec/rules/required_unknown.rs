use crate::diagnostic::rule;

rule! {
    /// :required that names no property
    pub(crate) REQUIRED_UNKNOWN, "DT213", "required-unknown", Error
}
