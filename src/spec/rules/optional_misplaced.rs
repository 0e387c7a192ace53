use crate::diagnostic::rule;

rule! {
    /// :optional inside :properties, where it has no effect
    pub(crate) OPTIONAL_MISPLACED, "DT218", "optional-misplaced", Warning
}
