use crate::diagnostic::rule;

rule! {
    /// a key without a value
    pub(crate) ODD_PLIST, "DT105", "odd-plist", Error
}
