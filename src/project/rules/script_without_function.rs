use crate::diagnostic::rule;

rule! {
    /// a script that returns no function
    pub(crate) SCRIPT_WITHOUT_FUNCTION, "DT406", "script-without-function", Error
}
