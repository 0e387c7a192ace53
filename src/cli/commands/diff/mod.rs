//! `deftool diff`: compares two versions of tools.

mod revision;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use deftool_lang::diagnostic::{Diagnostic, Severity, Summary, render};
use deftool_lang::schema::rules::{ACCEPTED_EXAMPLE_FAILS, REJECTED_EXAMPLE_PASSES};
use deftool_lang::schema::{Change, Impact, Importer, Target, compare_definitions, emit};
use deftool_lang::text::{Sources, count};
use deftool_project::{
    Load, LoadOptions, LoadedTool, SourceText, find_root, load_specs, load_with, read_source, resolve_inputs,
};
use serde_json::{Value, json};

use crate::cli::options::{FormatOptions, ProjectOptions};
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::inputs::CommandDirs;
use crate::cli::terminal::output::{
    clean, describe_summary, eprint_findings, eprint_progress, print_json, print_lines,
};
use revision::{Revision, is_json};

#[derive(Debug, Args)]
#[command(after_help = "\
A change breaks callers if arguments that the old schema accepts may be rejected by the new one. Other changes are only \
visible to the model. Exit codes: 0 no breaking change, 1 a breaking change, 2 some tools could not be compared.

Examples:
  deftool diff HEAD~1
  deftool diff origin/main specs/weather.eld
  deftool diff tools.json specs --json")]
pub(in crate::cli) struct DiffOptions {
    /// Old tools: a spec file, folder or project, JSON definitions (.json), or a git revision of the new tools
    pub(in crate::cli) old: PathBuf,
    /// New tools [default: the project around the current folder]
    pub(in crate::cli) new: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) format: FormatOptions,
    #[command(flatten)]
    pub(in crate::cli) project: ProjectOptions,
}

/// Prints the changes from the old to the new tools. Fails if one breaks callers, or if tools could not be compared.
pub(in crate::cli) fn run(options: &DiffOptions) -> Result<Exit, CliError> {
    let CommandDirs { current, project } = options.project.dirs()?;
    let new_path = match &options.new {
        Some(path) => project.join(path),
        None => find_root(&project)?,
    };
    let old_path = project.join(&options.old);
    let old = if old_path.symlink_metadata().is_ok() {
        Definitions::at(&old_path, &current)?
    } else {
        Definitions::in_revision(&options.old, &new_path, &current)?
    };
    let new = Definitions::at(&new_path, &current)?;
    let names = [&*options.old, options.new.as_deref().unwrap_or(Path::new("."))];
    let names = names.map(|name| name.display().to_string());
    for (side, name) in [&old, &new].into_iter().zip(&names) {
        if side.is_empty() && side.errors.is_empty() {
            return Err(CliError::Usage(format!("`{name}` contains no tools to compare with")));
        }
        side.report(name);
    }
    let mut changes = compare_definitions(&old.json, &new.json);
    // A tool with errors is neither added nor removed, nor is one that a side with errors may contain.
    changes.retain(|change| {
        let is_missing = |side: &Definitions| !side.errors.is_empty() && !side.has(&change.tool);
        let is_broken = |side: &Definitions| side.broken.contains(&change.tool) || is_missing(side);
        ![&old, &new].into_iter().any(is_broken)
    });
    let is_complete = old.errors.is_empty() && new.errors.is_empty();
    let breaking = changes.iter().filter(|change| change.impact == Impact::Breaking).count();
    if options.format.is_json() {
        let errors = [&old, &new].map(|of| render::json_report(&of.errors, &of.sources).findings);
        let errors: Vec<_> = errors.into_iter().flatten().collect();
        print_json(&json!({"changes": changes, "errors": errors}), true);
    } else {
        print_lines(&changes.iter().map(line).collect::<String>());
        eprint_progress(&match changes.len() {
            0 if is_complete => String::from("no changes"),
            0 => String::from("no changes in the other tools"),
            all => format!("{}, {breaking} breaking", count(all, "change")),
        });
    }
    Ok(match (breaking, is_complete) {
        (0, true) => Exit::Clean,
        (0, false) => Exit::NotAttempted,
        _ => Exit::Failed,
    })
}

fn line(change: &Change) -> String {
    let impact = match change.impact {
        Impact::Breaking => "breaks",
        Impact::Visible => "model ",
    };
    let path =
        change.path.trim_start_matches("/properties/").replace("/properties/", ".").replace("/items", "[]");
    let subject = if path.is_empty() { change.tool.clone() } else { format!("{} {path}", change.tool) };
    clean(&format!("{impact}  {subject}: {}\n", change.message))
}

/// The tools of one version.
struct Definitions {
    /// The definitions for OpenAI's API.
    json: Value,
    /// The names of the tools whose schemas have errors.
    broken: BTreeSet<String>,
    errors: Vec<Diagnostic>,
    sources: Arc<Sources>,
}

impl Definitions {
    /// Returns the tools in the JSON file, spec file, folder or project at `path`.
    fn at(path: &Path, current: &Path) -> Result<Self, CliError> {
        if is_json(path) {
            return Ok(Self::of_json(read_source(path)?, current));
        }
        Ok(Self::of_load(load_specs(&resolve_inputs(&[path.to_owned()], current)?, current)?))
    }

    /// Returns the tools of the git revision `name` in the file or folder that is now at `path`.
    fn in_revision(name: &Path, path: &Path, current: &Path) -> Result<Self, CliError> {
        let mut revision = Revision::read(name, path, current)?;
        if is_json(path) {
            let Some(text) = revision.json.take() else {
                return Err(CliError::Usage(format!("revision `{}` has no such file", name.display())));
            };
            return Ok(Self::of_json(text, current));
        }
        let options = LoadOptions { overlay: revision.texts, ..LoadOptions::default() };
        Ok(Self::of_load(load_with(&[revision.input], current, &options)?))
    }

    fn of_json(text: SourceText, current: &Path) -> Self {
        let mut sources = Sources::new();
        let (file, damage) = text.into_source(sources.id_ahead(0), current);
        let source = sources.add(file);
        let mut importer = Importer::new(None);
        if let Some(file) = sources.get(source) {
            importer.add(source, &file.text, None);
        }
        let imported = importer.finish();
        Self {
            json: emit(Target::OpenAi, imported.tools.iter()),
            broken: BTreeSet::new(),
            errors: damage.into_iter().chain(imported.findings).filter(is_error).collect(),
            sources: Arc::new(sources),
        }
    }

    fn of_load(load: Load) -> Self {
        let tools = load.tools.iter().filter(|loaded| loaded.shadowed_by.is_none());
        let (comparable, broken): (Vec<_>, Vec<_>) = tools.partition(|loaded| has_schema(loaded, &load));
        Self {
            json: emit(Target::OpenAi, comparable.iter().map(|loaded| &*loaded.tool)),
            broken: broken.iter().map(|loaded| loaded.tool.name.value.clone()).collect(),
            errors: load
                .findings
                .into_iter()
                .filter(|finding| is_error(finding) && !is_sample(finding))
                .collect(),
            sources: load.sources,
        }
    }

    fn has(&self, tool: &str) -> bool {
        let tools = self.json.as_array().into_iter().flatten();
        tools.filter_map(|entry| entry.pointer("/function/name")).any(|name| name == tool)
    }

    fn is_empty(&self) -> bool {
        self.json.as_array().is_none_or(Vec::is_empty)
    }

    /// Prints the errors to stderr.
    fn report(&self, name: &str) {
        eprint_findings(&self.errors, &self.sources);
        if let Some(counts) = describe_summary(&Summary::of(&self.errors)) {
            eprint_progress(&format!("{}: {counts}; these tools are not compared", clean(name)));
        }
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
