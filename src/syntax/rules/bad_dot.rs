use crate::diagnostic::rule;

rule! {
    /// a dot that is not before the last element of a list
    pub(crate) BAD_DOT, "DT004", "bad-dot", Error
}
