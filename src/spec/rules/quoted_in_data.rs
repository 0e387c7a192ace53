use crate::diagnostic::rule;

rule! {
    /// a quote inside data that is already quoted
    pub(crate) QUOTED_IN_DATA, "DT205", "quoted-in-data", Error
}
