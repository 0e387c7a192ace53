use crate::diagnostic::rule;

rule! {
    /// a closing parenthesis or bracket that closes nothing
    pub(crate) STRAY_CLOSER, "DT002", "stray-closer", Error
}
