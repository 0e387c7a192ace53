use crate::diagnostic::rule;

rule! {
    /// a worker that names a tool the project does not have
    pub(crate) UNKNOWN_WORKER_TOOL, "DT302", "unknown-worker-tool", Error
}
