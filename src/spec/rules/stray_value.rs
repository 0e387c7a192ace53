use crate::diagnostic::rule;

rule! {
    /// a value where a plist expects a key
    pub(crate) STRAY_VALUE, "DT104", "stray-value", Error
}
