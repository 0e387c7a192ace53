use crate::diagnostic::rule;

rule! {
    /// a key that is no JSON Schema keyword
    pub(crate) UNKNOWN_ARGUMENT_KEY, "DT206", "unknown-argument-key", Warning
}
