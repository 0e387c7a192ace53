//! What `run` stores with a request, so that `resume` can find its worker again.

use std::collections::BTreeMap;
use std::path::PathBuf;

use deftool_engine::PreparedWorker;
use deftool_lang::text::digest;
use deftool_project::{Generation, LoadedTool, ScriptState};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cli::worker::options::WorkerOptions;

/// The origin of a request. `tests/it/commands/stored/fields.txt` lists what each field may decide.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::cli) struct JournalContext {
    /// The project's folder; `None`: the worker does not belong to a project.
    pub(in crate::cli) project: Option<PathBuf>,
    /// The worker.
    pub(in crate::cli) worker: String,
    /// The URL of the server on the command line.
    pub(in crate::cli) endpoint: Option<String>,
    /// The model on the command line.
    #[serde(default)]
    pub(in crate::cli) model: Option<String>,
    /// The parameters on the command line.
    #[serde(default)]
    pub(in crate::cli) params: Vec<(String, Value)>,
    /// The digest of the definition and the script of each tool.
    tools: BTreeMap<String, String>,
}

impl JournalContext {
    pub(in crate::cli) fn of(
        open: &PreparedWorker,
        options: &WorkerOptions,
        params: &[(String, Value)],
    ) -> Self {
        let generation = open.tools.project().current();
        Self {
            project: generation.load.root.clone(),
            worker: open.spec.name.value.clone(),
            endpoint: options.endpoint.clone(),
            model: options.model.clone(),
            params: params.to_owned(),
            tools: digests(open, &generation),
        }
    }

    /// Describes the tools that changed or are gone.
    pub(in crate::cli) fn changes(&self, open: &PreparedWorker) -> Vec<String> {
        let now = digests(open, &open.tools.project().current());
        let changes = self.tools.iter().filter_map(|(name, before)| match now.get(name) {
            None => Some(format!("the tool `{name}` no longer exists or has errors")),
            Some(now) if now != before => Some(format!("the tool `{name}` has changed")),
            Some(_) => None,
        });
        changes.collect()
    }
}

fn digests(open: &PreparedWorker, generation: &Generation) -> BTreeMap<String, String> {
    let offered = generation.tool_set(&open.spec);
    let loaded = offered.iter().filter_map(|entry| Some((entry, generation.tool(&entry.name)?)));
    loaded
        .map(|(entry, loaded)| (entry.name.clone(), digest_of(&entry.definition.to_string(), loaded)))
        .collect()
}

fn digest_of(definition: &str, loaded: &LoadedTool) -> String {
    let mut parts = vec![definition.as_bytes()];
    if let ScriptState::Ready(script) = &loaded.script {
        parts.push(&script.source);
        parts.extend(script.modules.iter().map(|module| &*module.source));
    }
    digest(parts)
}
