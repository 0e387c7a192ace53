use crate::diagnostic::rule;

rule! {
    /// a key that no tool form has
    pub(crate) UNKNOWN_TOOL_KEY, "DT108", "unknown-tool-key", Warning
}
