use crate::diagnostic::rule;

rule! {
    /// an :enum value that does not fit the :type
    pub(crate) ENUM_MISFIT, "DT208", "enum-misfit", Error
}
