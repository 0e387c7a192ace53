use crate::diagnostic::rule;

rule! {
    /// :properties that is not a plist of plists
    pub(crate) PROPERTIES_NOT_A_PLIST, "DT211", "properties-not-a-plist", Error
}
