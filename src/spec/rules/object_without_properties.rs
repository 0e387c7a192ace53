use crate::diagnostic::rule;

rule! {
    /// an object that does not say what it holds
    pub(crate) OBJECT_WITHOUT_PROPERTIES, "DT210", "object-without-properties", Warning
}
