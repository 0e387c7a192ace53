use crate::diagnostic::rule;

rule! {
    /// a file that cannot be read
    pub(crate) UNREADABLE, "DT404", "unreadable", Error
}
