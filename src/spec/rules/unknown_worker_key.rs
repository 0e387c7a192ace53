use crate::diagnostic::rule;

rule! {
    /// a key that workers do not have
    pub(crate) UNKNOWN_WORKER_KEY, "DT301", "unknown-worker-key", Warning
}
