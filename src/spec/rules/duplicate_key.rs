use crate::diagnostic::rule;

rule! {
    /// a key that is given twice; the first counts
    pub(crate) DUPLICATE_KEY, "DT106", "duplicate-key", Warning
}
