use crate::diagnostic::rule;

rule! {
    /// an opening parenthesis, bracket or string that is never closed
    pub(crate) UNCLOSED, "DT001", "unclosed", Error
}
