use crate::diagnostic::rule;

rule! {
    /// a value of the wrong kind for its key
    pub(crate) WRONG_VALUE, "DT113", "wrong-value", Error
}
