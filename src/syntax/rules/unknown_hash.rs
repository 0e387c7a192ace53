use crate::diagnostic::rule;

rule! {
    /// reader syntax after # that Emacs does not have
    pub(crate) UNKNOWN_HASH, "DT007", "unknown-hash", Error
}
