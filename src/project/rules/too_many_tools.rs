use std::collections::HashSet;
use std::path::Path;

use crate::diagnostic::{Diagnostic, rule};
use crate::project::Load;
use crate::spec::{ToolKind, WorkerSpec};
use crate::text::{Location, Spanned};

rule! {
    /// more tools than a request may hold
    ///
    /// OpenAI refuses a request with more than 128 tools ("array too long. Expected an array with maximum length 128", seen from
    /// 2024 to 2025). Models choose badly among far fewer, and each costs tokens in every request. Name what a worker
    /// needs in its `:tools`.
    pub(crate) TOO_MANY_TOOLS, "DT311", "too-many-tools", Warning
}

const MOST: usize = 128;

/// Each worker of the projects that were read whole; of one without workers, all of its tools.
pub(in crate::project) fn check(load: &Load, whole: &HashSet<&Path>) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    for &root in whole {
        let of_root = |source| load.root_of(source) == Some(root);
        let tools: Vec<_> =
            load.tools.iter().map(|loaded| &loaded.tool).filter(|tool| of_root(tool.source)).collect();
        if tools.len() <= MOST {
            continue;
        }
        let is_of_root = |worker: &&WorkerSpec| worker.source.is_some_and(of_root);
        for worker in load.workers.iter().filter(is_of_root) {
            let listed = |list: &Option<Vec<Spanned<String>>>, kind| match list {
                Some(list) => list.len(),
                None => tools.iter().filter(|tool| tool.kind == kind).count(),
            };
            let count = listed(&worker.tools, ToolKind::Normal) + listed(&worker.exit_tools, ToolKind::Exit);
            if let Some(source) = worker.source.filter(|_| count > MOST) {
                let at = Location { source, span: worker.name.span };
                findings.push(finding(at, &format!("worker `{}` offers", worker.name.value), count));
            }
        }
        if !load.workers.iter().any(|worker| is_of_root(&worker))
            && let Some(first_over) = tools.get(MOST)
        {
            let at = Location { source: first_over.source, span: first_over.name.span };
            findings.push(finding(at, "the project has", tools.len()));
        }
    }
    findings
}

fn finding(at: Location, who: &str, count: usize) -> Diagnostic {
    Diagnostic::new(&TOO_MANY_TOOLS, at, format!("{who} {count} tools, and OpenAI takes {MOST} in a request"))
        .note("name those that belong together in the `:tools` of a worker")
}
