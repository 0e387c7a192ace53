use crate::diagnostic::rule;

rule! {
    /// a character literal that Emacs does not read
    pub(crate) BAD_CHARACTER, "DT006", "bad-character", Error
}
