use crate::diagnostic::rule;

rule! {
    /// a :type written as a string
    pub(crate) TYPE_AS_STRING, "DT217", "type-as-string", Note
}
