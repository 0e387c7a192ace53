use crate::diagnostic::rule;

rule! {
    /// a backslash escape that Emacs does not read
    pub(crate) BAD_ESCAPE, "DT005", "bad-escape", Error
}
