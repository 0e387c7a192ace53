use crate::diagnostic::rule;

rule! {
    /// an array that does not say what it holds
    pub(crate) ARRAY_WITHOUT_ITEMS, "DT209", "array-without-items", Warning
}
