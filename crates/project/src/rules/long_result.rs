use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::schema::longest_returned_string;
use deftool_lang::spec::{DEFAULT_MAX_RESULT, Tool, ToolKind, WorkerSpec};
use deftool_lang::text::{Location, Spanned};

use crate::model::Load;

rule! {
    /// a result that may be longer than a model gets
    ///
    /// A model gets the beginning of a result that is longer than the `:max-result` of its tool, or of the worker, by
    /// default 64 KiB. The `:returns` of the tool permits a longer string. The sizes of results without such a limit are
    /// unknown, and are not reported.
    ///
    /// ```eld fails
    /// (deftool :name "log" :description "Read the log." :returns (:type string :maxLength 200000))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "log" :description "Read the log." :returns (:type string :maxLength 200000)
    ///  :max-result "200KB")
    /// ```
    pub(crate) LONG_RESULT, "DT317", "long-result", Warning
}

/// Checks `tools` of the `known` projects, whose specs are all read: the limit may depend on the workers.
pub(crate) fn check(load: &Load, tools: &[Arc<Tool>], known: &HashSet<&Path>) -> Vec<Diagnostic> {
    let findings = tools.iter().filter(|tool| tool.kind == ToolKind::Normal).filter_map(|tool| {
        let (length, span) = longest_returned_string(tool)?;
        let root = load.root_of(tool.source).filter(|root| known.contains(root))?;
        let limit = max_result(load, root, tool);
        (length > limit).then(|| {
            let at = Location { source: tool.source, span };
            finding(at, &tool.name.value, length, limit)
        })
    });
    findings.collect()
}

/// Returns the limit of a tool: its own, or the smallest of the workers that use it.
fn max_result(load: &Load, root: &Path, tool: &Tool) -> u64 {
    let is_user = |worker: &&WorkerSpec| {
        let is_listed = |tools: &Vec<Spanned<String>>| tools.iter().any(|listed| listed.value == tool.name.value);
        let of_root = worker.source.is_some_and(|source| load.root_of(source) == Some(root));
        of_root && worker.tools.as_ref().is_none_or(is_listed)
    };
    let of_workers = load.workers.iter().filter(is_user).map(|worker| worker.max_result).min();
    tool.max_result.or(of_workers).unwrap_or(DEFAULT_MAX_RESULT)
}

fn finding(at: Location, tool: &str, length: u64, limit: u64) -> Diagnostic {
    let message =
        format!("`{tool}` may return a string of {length} characters, but a model gets {limit} bytes of a result");
    Diagnostic::new(&LONG_RESULT, at, message).note("set the `:max-result` of the tool, or a smaller `:maxLength`")
}
