use crate::diagnostic::rule;

rule! {
    /// a script whose function does not take the tool's arguments
    pub(crate) SCRIPT_ARITY, "DT403", "script-arity", Error
}
