//! The methods about the project: `list`, `check` and `compile`.

use std::path::Path;

use deftool_jsonrpc::{Error, code};
use deftool_lang::diagnostic::render::{JsonReport, json_report};
use deftool_lang::schema::{Target, emit};
use deftool_lang::spec;
use deftool_lang::text::LineColumn;
use deftool_project::{
    Generation, LoadOptions, LoadedTool, ScriptState, ToolOrigin, load_with, resolve_inputs,
};
use deftool_worker::{DEFAULT_WORKER, default_of};
use serde_json::Value;

use crate::protocol::{
    CheckParams, CompileParams, CompileResult, Confirm, Empty, Kind, ListResult, Origin, ToolInfo,
};
use crate::session::Session;

impl Session {
    pub(crate) fn list(&self, _: Empty) -> ListResult {
        let generation = self.host.project.current();
        // Outside of projects, all workers are those of the user.
        let own =
            (generation.load.root.is_some() || generation.user().is_none()).then(|| workers_of(&generation));
        let mut workers = own.unwrap_or_default();
        for name in generation.user().into_iter().flat_map(|user| workers_of(user)) {
            if !workers.contains(&name) {
                workers.push(name);
            }
        }
        ListResult {
            project: self.host.root.display().to_string(),
            generation: generation.number,
            tools: offered(&generation)
                .map(|loaded| describe(loaded, &generation, &self.host.root))
                .collect(),
            workers,
        }
    }

    /// Loads the project again, because a generation contains the findings of one set of options.
    pub(crate) fn check(&self, params: CheckParams) -> Result<JsonReport, Error> {
        let targets = params.targets.iter().map(|name| target(name)).collect::<Result<_, _>>()?;
        let options =
            LoadOptions { with_scripts: true, targets, raises_denied: true, ..LoadOptions::default() };
        let root = &self.host.root;
        let load = || load_with(&resolve_inputs(&[], root)?, root, &options);
        let load = tokio::task::block_in_place(load);
        let load = load.map_err(|error| Error::new(code::REQUEST_FAILED, error.to_string()))?;
        Ok(json_report(&load.findings, &load.sources))
    }

    pub(crate) fn compile(&self, params: CompileParams) -> Result<CompileResult, Error> {
        let target = params.target.as_deref().map_or(Ok(Target::OpenAi), target)?;
        let generation = self.host.project.current();
        let tools: Vec<&LoadedTool> = match &params.tools {
            // The definitions of a project must not depend on the user.
            None => {
                let is_outside = generation.load.root.is_none();
                offered(&generation)
                    .filter(|loaded| is_outside || loaded.origin != ToolOrigin::User)
                    .collect()
            }
            Some(names) => {
                let found = names.iter().map(|name| generation.find_tool(name));
                found.collect::<Result<_, _>>().map_err(|error| crate::calls::failed(&error))?
            }
        };
        let definitions = emit(target, tools.into_iter().map(|loaded| &*loaded.tool));
        Ok(CompileResult { generation: generation.number, definitions })
    }
}

/// Returns the names of the valid workers, that of the default one first.
fn workers_of(generation: &Generation) -> Vec<String> {
    let workers = &generation.load.workers;
    if workers.is_empty() {
        return vec![String::from(DEFAULT_WORKER)];
    }
    let default = default_of(workers).map(|worker| &worker.name.value);
    let valid = workers.iter().filter(|worker| worker.valid).map(|worker| &worker.name.value);
    let (first, others): (Vec<&String>, Vec<&String>) = valid.partition(|name| Some(*name) == default);
    first.into_iter().chain(others).cloned().collect()
}

/// Returns the tools without errors.
fn offered(generation: &Generation) -> impl Iterator<Item = &LoadedTool> {
    generation.tools().filter(|loaded| !matches!(loaded.script, ScriptState::Broken(_)))
}

fn target(name: &str) -> Result<Target, Error> {
    let found = Target::ALL.into_iter().find(|target| target.as_str() == name);
    found.ok_or_else(|| {
        let advice = spec::advice_on_name(name, "targets", Target::ALL.map(Target::as_str));
        Error::new(code::INVALID_PARAMS, format!("unknown target `{name}`; {advice}"))
    })
}

fn describe(loaded: &LoadedTool, generation: &Generation, root: &Path) -> ToolInfo {
    let (tool, sources) = (&loaded.tool, &generation.load_of(loaded).sources);
    let mut definition = match emit(Target::Mcp, [&**tool]) {
        Value::Array(mut definitions) => definitions.pop().unwrap_or_default(),
        _ => Value::Null,
    };
    // A tool of an earlier generation has no location in this one.
    let position = sources.get(tool.source).filter(|file| file.name == *loaded.file);
    let position =
        position.map_or(LineColumn { line: 1, column: 1 }, |file| file.line_column(tool.name.span.start));
    let file = Path::new(&*loaded.file);
    ToolInfo {
        name: tool.name.value.clone(),
        kind: match tool.kind {
            spec::ToolKind::Normal => Kind::Normal,
            spec::ToolKind::Exit => Kind::Exit,
        },
        description: tool.description.value.clone(),
        category: tool.category.as_ref().map(|category| category.value.clone()),
        confirm: match tool.confirm {
            spec::Confirm::Never => Confirm::Never,
            spec::Confirm::Always => Confirm::Always,
            spec::Confirm::When(_) => Confirm::Sometimes,
        },
        parameters: definition["inputSchema"].take(),
        origin: match loaded.origin {
            ToolOrigin::User => Origin::User,
            ToolOrigin::Project | ToolOrigin::Replacement => Origin::Project,
        },
        file: file.strip_prefix(root).unwrap_or(file).display().to_string(),
        line: position.line,
    }
}
