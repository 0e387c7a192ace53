use crate::diagnostic::rule;

rule! {
    /// two definitions of one name
    pub(crate) DUPLICATE_NAME, "DT111", "duplicate-name", Error
}
