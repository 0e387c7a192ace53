use crate::diagnostic::rule;

rule! {
    /// an escape for a raw byte, which JSON cannot carry
    pub(crate) RAW_BYTE, "DT009", "raw-byte", Warning
}
