use crate::diagnostic::rule;

rule! {
    /// an integer beyond 64 bits
    pub(crate) INEXACT_NUMBER, "DT215", "inexact-number", Warning
}
