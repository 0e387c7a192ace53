use crate::diagnostic::rule;

rule! {
    /// a key that ends in a colon
    pub(crate) STRAY_COLON, "DT107", "stray-colon", Warning
}
