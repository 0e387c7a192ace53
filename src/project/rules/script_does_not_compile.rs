use crate::diagnostic::rule;

rule! {
    /// a script that Luau does not compile
    pub(crate) SCRIPT_DOES_NOT_COMPILE, "DT402", "script-does-not-compile", Error
}
