use crate::diagnostic::rule;

rule! {
    /// code where a constant is needed
    pub(crate) NOT_A_CONSTANT, "DT102", "not-a-constant", Error
}
