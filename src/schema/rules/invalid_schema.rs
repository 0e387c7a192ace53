use crate::diagnostic::rule;

rule! {
    /// arguments whose JSON Schema does not compile
    pub(crate) INVALID_SCHEMA, "DT216", "invalid-schema", Warning
}
