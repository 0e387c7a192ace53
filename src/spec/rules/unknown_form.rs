use crate::diagnostic::rule;

rule! {
    /// a top-level form that is none of the known ones
    pub(crate) UNKNOWN_FORM, "DT101", "unknown-form", Error
}
