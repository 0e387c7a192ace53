use crate::diagnostic::rule;

rule! {
    /// a value that has no JSON form
    pub(crate) NOT_JSON, "DT214", "not-json", Error
}
