use crate::diagnostic::rule;

rule! {
    /// :required on an argument; arguments are required unless :optional
    pub(crate) REQUIRED_MISPLACED, "DT212", "required-misplaced", Warning
}
