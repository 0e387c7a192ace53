//! The tools to lower, for callers that do not need all tools of a project.

use std::collections::BTreeSet;

use super::{ToolKind, WorkerSpec};
use crate::text::Spanned;

/// The tools to lower, by name. The default selects all tools. Tools with a computed name, workers, MCP servers and
/// settings are always lowered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolSelection {
    /// The names of normal tools; `None`: all.
    tools: Option<BTreeSet<String>>,
    /// The names of exit tools; `None`: all.
    exit_tools: Option<BTreeSet<String>>,
}

impl ToolSelection {
    /// Selects no tools.
    pub fn none() -> Self {
        Self { tools: Some(BTreeSet::new()), exit_tools: Some(BTreeSet::new()) }
    }

    /// Selects the tools and exit tools called `name`.
    pub fn named(name: &str) -> Self {
        let names = BTreeSet::from([name.to_owned()]);
        Self { tools: Some(names.clone()), exit_tools: Some(names) }
    }

    /// Selects the tools that `worker` may use.
    pub fn of_worker(worker: &WorkerSpec) -> Self {
        let names = |listed: &Option<Vec<Spanned<String>>>| {
            listed.as_ref().map(|listed| listed.iter().map(|name| name.value.clone()).collect())
        };
        Self { tools: names(&worker.tools), exit_tools: names(&worker.exit_tools) }
    }

    /// Returns whether all tools are selected.
    pub fn is_all(&self) -> bool {
        self.tools.is_none() && self.exit_tools.is_none()
    }

    /// Returns whether the tool is selected.
    pub(crate) fn contains(&self, kind: ToolKind, name: &str) -> bool {
        let names = match kind {
            ToolKind::Normal => &self.tools,
            ToolKind::Exit => &self.exit_tools,
        };
        names.as_ref().is_none_or(|names| names.contains(name))
    }
}
