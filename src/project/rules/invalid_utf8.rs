use crate::diagnostic::rule;

rule! {
    /// bytes that are not UTF-8
    pub(crate) INVALID_UTF8, "DT008", "invalid-utf8", Error
}
