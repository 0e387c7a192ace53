use crate::diagnostic::rule;

rule! {
    /// a member of :params that the engine sets itself
    pub(crate) RESERVED_PARAM, "DT303", "reserved-param", Warning
}
