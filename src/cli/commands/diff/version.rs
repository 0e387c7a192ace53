//! The tools of one version, by project.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use deftool_lang::diagnostic::{Diagnostic, Severity, Summary};
use deftool_lang::schema::rules::{ACCEPTED_EXAMPLE_FAILS, REJECTED_EXAMPLE_PASSES};
use deftool_lang::schema::{Change, Target, compare_definitions, emit};
use deftool_lang::text::{SourceId, Sources};
use deftool_project::{Input, Load, LoadOptions, LoadedTool, Overlay, display_name, load_with};
use serde::Serialize;
use serde_json::Value;

use crate::cli::outcome::CliError;
use crate::cli::terminal::output::{clean, describe_summary, eprint_findings, eprint_progress};

/// A difference between two versions of a tool.
#[derive(Serialize)]
pub(super) struct ProjectChange {
    /// The project of the tool, relative to the folder that is compared; empty if it is that folder.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) project: String,
    #[serde(flatten)]
    pub(super) change: Change,
}

/// The tools of one version.
pub(super) struct Version {
    /// The tools of each project, by its path relative to the folder that is compared. Files outside of projects and the
    /// project around the folder have no name.
    projects: BTreeMap<String, Definitions>,
    pub(super) errors: Vec<Diagnostic>,
    pub(super) sources: Arc<Sources>,
}

/// The tools of one project.
#[derive(Default)]
struct Definitions {
    /// The definitions for OpenAI's API.
    json: Value,
    /// The names of the tools whose schemas have errors.
    broken: BTreeSet<String>,
    has_errors: bool,
}

impl Version {
    /// Reads the tools of `inputs`, by their projects below `base`, or together. File names in messages are relative to
    /// `current`.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub(super) fn read(
        inputs: &[Input],
        overlay: Overlay,
        base: Option<&Path>,
        current: &Path,
    ) -> Result<Self, CliError> {
        let options = LoadOptions { overlay, reads_lists: true, ..LoadOptions::default() };
        Ok(Self::of_load(load_with(inputs, current, &options)?, base))
    }

    fn of_load(load: Load, base: Option<&Path>) -> Self {
        let project_of = |source: SourceId| {
            let root = load.root_of(source).zip(base);
            let name = root.and_then(|(root, base)| root.strip_prefix(base).ok());
            name.map_or_else(String::new, |name| display_name(name, Path::new("")))
        };
        let mut tools: BTreeMap<String, Vec<&LoadedTool>> = BTreeMap::new();
        for loaded in load.tools.iter().filter(|loaded| loaded.shadowed_by.is_none()) {
            tools.entry(project_of(loaded.tool.source)).or_default().push(loaded);
        }
        let mut projects: BTreeMap<String, Definitions> = BTreeMap::new();
        for (project, tools) in tools {
            let (comparable, broken): (Vec<&LoadedTool>, Vec<&LoadedTool>) =
                tools.into_iter().partition(|loaded| has_schema(loaded, &load));
            let definitions = Definitions {
                json: emit(Target::OpenAi, comparable.iter().map(|loaded| &*loaded.tool)),
                broken: broken.iter().map(|loaded| loaded.tool.name.value.clone()).collect(),
                has_errors: false,
            };
            projects.insert(project, definitions);
        }
        let errors = load.findings.iter().filter(|finding| is_error(finding) && !is_sample(finding));
        let errors: Vec<Diagnostic> = errors.cloned().collect();
        for error in &errors {
            projects.entry(project_of(error.primary.source)).or_default().has_errors = true;
        }
        Self { projects, errors, sources: load.sources }
    }

    /// Returns whether there is nothing to compare.
    pub(super) fn is_empty(&self) -> bool {
        self.errors.is_empty() && self.projects.values().all(Definitions::is_empty)
    }

    /// Prints the errors to stderr. `name`: the name of the version.
    pub(super) fn report(&self, name: &str) {
        eprint_findings(&self.errors, &self.sources);
        if let Some(counts) = describe_summary(&Summary::of(&self.errors)) {
            eprint_progress(&format!("{}: {counts}; these tools are not compared", clean(name)));
        }
    }

    /// Returns the changes from this version to a new one, each project with itself. A project of one version only has no
    /// tools in the other.
    pub(super) fn changes_to(&self, new: &Self) -> Vec<ProjectChange> {
        let nothing = Definitions::default();
        let names: BTreeSet<&String> = self.projects.keys().chain(new.projects.keys()).collect();
        let of_project = |name: &String| {
            let [old, new] = [self, new].map(|version| version.projects.get(name).unwrap_or(&nothing));
            let mut changes = compare_definitions(&old.json, &new.json);
            // A tool with errors is neither added nor removed, nor is one that a side with errors may contain.
            changes.retain(|change| ![old, new].into_iter().any(|side| side.may_hide(&change.tool)));
            let project = name.clone();
            changes.into_iter().map(move |change| ProjectChange { project: project.clone(), change })
        };
        names.into_iter().flat_map(of_project).collect()
    }
}

impl Definitions {
    /// Returns whether errors may hide the tool or parts of it.
    fn may_hide(&self, tool: &str) -> bool {
        self.broken.contains(tool) || (self.has_errors && !self.has(tool))
    }

    fn has(&self, tool: &str) -> bool {
        let tools = self.json.as_array().into_iter().flatten();
        tools.filter_map(|entry| entry.pointer("/function/name")).any(|name| name == tool)
    }

    fn is_empty(&self) -> bool {
        self.json.as_array().is_none_or(Vec::is_empty)
    }
}

fn is_error(finding: &Diagnostic) -> bool {
    finding.severity == Severity::Error
}

/// Whether a sample call is wrong. The schema may be right.
fn is_sample(finding: &Diagnostic) -> bool {
    *finding.rule == ACCEPTED_EXAMPLE_FAILS || *finding.rule == REJECTED_EXAMPLE_PASSES
}

/// Whether the schema of a tool has no errors.
fn has_schema(loaded: &LoadedTool, load: &Load) -> bool {
    let tool = &loaded.tool;
    let is_inside = |finding: &Diagnostic| {
        let at = finding.primary.span;
        finding.primary.source == tool.source && tool.span.start <= at.start && at.end <= tool.span.end
    };
    tool.valid || {
        let mut errors =
            load.findings.iter().filter(|finding| is_error(finding) && is_inside(finding)).peekable();
        errors.peek().is_some() && errors.all(is_sample)
    }
}
