use crate::diagnostic::rule;

rule! {
    /// :args that is not a list of argument plists
    pub(crate) ARGS_NOT_A_LIST, "DT201", "args-not-a-list", Error
}
