use crate::diagnostic::rule;

rule! {
    /// two arguments of one name
    pub(crate) DUPLICATE_ARGUMENT, "DT202", "duplicate-argument", Error
}
