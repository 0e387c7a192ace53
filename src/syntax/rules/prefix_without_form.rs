use crate::diagnostic::rule;

rule! {
    /// a quote, backquote or comma with nothing after it
    pub(crate) PREFIX_WITHOUT_FORM, "DT003", "prefix-without-form", Error
}
