use crate::diagnostic::rule;

rule! {
    /// an :enum that is not a vector of constants
    pub(crate) ENUM_NOT_A_VECTOR, "DT207", "enum-not-a-vector", Error
}
