use crate::diagnostic::rule;

rule! {
    /// data nested too deeply
    pub(crate) TOO_DEEP, "DT103", "too-deep", Error
}
