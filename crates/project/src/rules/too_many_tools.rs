use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::spec::{Api, ToolKind, WorkerSpec};
use deftool_lang::text::{Location, Spanned};

use crate::model::{Load, LoadedTool};

rule! {
    /// more tools than a request can contain
    ///
    /// OpenAI rejects a request with more than 128 tools ("array too long. Expected an array with maximum length 128",
    /// seen from 2024 to 2025). Models also choose less reliably among many tools, and each tool costs tokens in every
    /// request. List the tools that a worker needs in its `:tools`. A worker with `:api messages`, and `--target` of an API
    /// without such a limit, are not reported.
    pub(crate) TOO_MANY_TOOLS, "DT311", "too-many-tools", Warning
}

const MAX_TOOLS: usize = 128;

/// Checks each worker of the `known` projects, whose specs are all read, or all tools of a project without workers.
pub(crate) fn check(load: &Load, known: &HashSet<&Path>) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    for &root in known {
        let of_root = |source| load.root_of(source) == Some(root);
        let files = load.tools.chunk_by(|one, next| one.tool.source == next.tool.source);
        let is_file_of_root =
            |tools: &&[Arc<LoadedTool>]| tools.first().is_some_and(|loaded| of_root(loaded.tool.source));
        let tools: Vec<_> =
            files.filter(is_file_of_root).flatten().map(|loaded| &loaded.tool).collect();
        if tools.len() <= MAX_TOOLS {
            continue;
        }
        let is_of_root = |worker: &&WorkerSpec| worker.source.is_some_and(of_root);
        let is_of_openai = |worker: &&WorkerSpec| worker.api != Some(Api::Messages);
        for worker in load.workers.iter().filter(is_of_root).filter(is_of_openai) {
            let listed = |list: &Option<Vec<Spanned<String>>>, kind| match list {
                Some(list) => list.len(),
                None => tools.iter().filter(|tool| tool.kind == kind).count(),
            };
            let count = listed(&worker.tools, ToolKind::Normal) + listed(&worker.exit_tools, ToolKind::Exit);
            if let Some(source) = worker.source.filter(|_| count > MAX_TOOLS) {
                let at = Location { source, span: worker.name.span };
                findings.push(finding(at, &format!("worker `{}` offers", worker.name.value), count));
            }
        }
        if !load.workers.iter().any(|worker| is_of_root(&worker))
            && let Some(first_over) = tools.get(MAX_TOOLS)
        {
            let at = Location { source: first_over.source, span: first_over.name.span };
            findings.push(finding(at, "the project has", tools.len()));
        }
    }
    findings
}

fn finding(at: Location, subject: &str, count: usize) -> Diagnostic {
    Diagnostic::new(&TOO_MANY_TOOLS, at, format!("{subject} {count} tools, but OpenAI accepts at most {MAX_TOOLS} in a request"))
        .note("list the tools that a worker needs in its `:tools`")
}
