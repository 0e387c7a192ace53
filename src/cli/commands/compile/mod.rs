//! `deftool compile`: prints the tool definitions for an API or for Emacs.

mod targets;

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::{ArgGroup, Args};
use deftool_lang::diagnostic::{Diagnostic, Group, Severity, Summary};
use deftool_lang::schema::{Target, emit, emit_gptel, lost_in_gptel};
use deftool_lang::spec::{FileKind, Origin, format_generated};
use deftool_lang::syntax::rules::NOT_A_CONSTANT;
use deftool_lang::text::Location;
use deftool_project::{Load, LoadOptions, LoadedTool, load_with};

use crate::cli::options::{FormatOptions, ProjectOptions, one_of, target};
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::generated::{OutputOptions, Put};
use crate::cli::project::inputs::{inputs_of, refuse_nothing};
use crate::cli::terminal::output::{
    clean, describe_summary, eprint_findings, eprint_line, eprint_progress, escape_json,
};

#[derive(Debug, Args)]
#[command(after_help = "\
Tools with errors are omitted, and so are tools that the target rejects. `--list-targets` lists the targets.

Examples:
  deftool compile
  deftool compile --target anthropic specs/weather.eld
  deftool compile -o tools.json
  deftool compile --check tools.json
  deftool compile --target gptel > tools.el
  deftool compile --list-targets openai-strict")]
#[command(group(ArgGroup::new("list-format").args(["format", "json"]).multiple(true).requires("list_targets")))]
pub(in crate::cli) struct CompileOptions {
    /// Spec files, folders or projects [default: the project around the current folder]
    pub(in crate::cli) paths: Vec<PathBuf>,
    /// Target API, or `gptel` for Emacs Lisp
    #[arg(long, value_parser = compile_target(), default_value = "openai")]
    pub(in crate::cli) target: CompileTarget,
    /// List the target APIs, or describe what TARGET does with each schema keyword
    #[arg(long, value_name = "TARGET", num_args = 0..=1, value_parser = target(), conflicts_with_all = ["paths", "target", "output", "check"])]
    #[allow(clippy::option_option)] // the option has an optional value
    pub(in crate::cli) list_targets: Option<Option<Target>>,
    #[command(flatten)]
    pub(in crate::cli) format: FormatOptions,
    #[command(flatten)]
    pub(in crate::cli) output: OutputOptions,
    #[command(flatten)]
    pub(in crate::cli) project: ProjectOptions,
}

/// The output of `compile`: JSON for an API, or Emacs Lisp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum CompileTarget {
    Api(Target),
    Gptel,
}

fn compile_target() -> impl TypedValueParser<Value = CompileTarget> {
    let targets = Target::ALL.map(|target| (target.as_str(), CompileTarget::Api(target)));
    one_of(targets.into_iter().chain([("gptel", CompileTarget::Gptel)]))
}

/// Prints all valid tools. Tools with errors and tools that the target rejects are omitted and reported. Keywords that
/// the target drops or weakens are reported.
pub(in crate::cli) fn run(options: &CompileOptions) -> Result<Exit, CliError> {
    if let Some(target) = options.list_targets {
        targets::print_targets(target, options.format.is_json());
        return Ok(Exit::Clean);
    }
    let dirs = options.project.dirs()?;
    let targets = match options.target {
        CompileTarget::Api(target) => vec![target],
        CompileTarget::Gptel => Vec::new(),
    };
    let inputs = inputs_of(&options.paths, &dirs.project)?;
    let load = load_with(&inputs, &dirs.current, &LoadOptions { targets, ..LoadOptions::default() })?;
    refuse_nothing(&options.paths, &load)?;
    let text = match options.target {
        CompileTarget::Api(target) => compile_for_api(&load, target),
        CompileTarget::Gptel => compile_for_gptel(&load),
    };
    let is_complete = report(&load, options.target);
    if let Some(output) = options.output.output.as_ref().filter(|_| !is_complete) {
        eprint_line(&format!("{} was not written", clean(&output.display().to_string())));
        return Ok(Exit::Failed);
    }
    let put = options.output.put(&dirs.current, &text, |name| update_command(options, name))?;
    Ok(if is_complete && put != Put::OutOfDate { Exit::Clean } else { Exit::Failed })
}

/// Returns the command that writes the file `name` with the same options.
fn update_command(options: &CompileOptions, name: &str) -> String {
    let target = match options.target {
        CompileTarget::Api(Target::OpenAi) => None,
        CompileTarget::Api(target) => Some(target.as_str()),
        CompileTarget::Gptel => Some("gptel"),
    };
    let mut words = vec![String::from("deftool compile")];
    words.extend(target.map(|target| format!("--target {target}")));
    words.extend(options.paths.iter().map(|path| path.display().to_string()));
    words.push(format!("-o {name}"));
    words.join(" ")
}

fn compile_for_api(load: &Load, target: Target) -> String {
    let json = emit(target, load.valid_tools().map(|loaded| &*loaded.tool));
    format!("{}\n", escape_json(serde_json::to_string_pretty(&json).unwrap_or_default()))
}

fn compile_for_gptel(load: &Load) -> String {
    let usable = load.tools.iter().filter(|loaded| shadowing(loaded, CompileTarget::Gptel).is_none());
    let tools: Vec<_> = usable.map(|loaded| &*loaded.tool).filter(|tool| tool.valid).collect();
    for tool in &tools {
        let lost = lost_in_gptel(tool);
        if !lost.is_empty() {
            let name = clean(&tool.name.value);
            eprint_line(&format!("note: `{name}` in gptel: {}", lost.join("; ")));
        }
    }
    let text_of = |source| load.sources.get(source).map_or("", |file| &*file.text);
    format_generated(emit_gptel(tools, text_of), FileKind::EmacsLisp)
}

/// Returns the name of the tool that makes another tool unusable. gptel can hold tools of the same name in several
/// categories.
fn shadowing(loaded: &LoadedTool, target: CompileTarget) -> Option<Location> {
    let is_held = target == CompileTarget::Gptel && loaded.tool.origin == Origin::Registered;
    loaded.shadowed_by.filter(|_| !is_held)
}

/// Reports the omitted tools, and keywords that the target does not support. Returns whether no tool was omitted.
fn report(load: &Load, target: CompileTarget) -> bool {
    for loaded in &load.tools {
        let Some(first) = shadowing(loaded, target) else { continue };
        let tool = &loaded.tool;
        eprint_line(&format!(
            "note: omitted `{}` at {}: a request can contain one tool of this name, and {} defines the first",
            clean(&tool.name.value),
            load.sources.describe(Location { source: tool.source, span: tool.name.span }),
            load.sources.describe(first)
        ));
    }
    let is_omitted =
        |finding: &Diagnostic| finding.severity == Severity::Error || *finding.rule == NOT_A_CONSTANT;
    let is_relevant = |finding: &&Diagnostic| is_omitted(finding) || finding.rule.group() == Group::Targets;
    let findings: Vec<_> = load.findings.iter().filter(is_relevant).cloned().collect();
    eprint_findings(&findings, &load.sources);
    let is_complete = !findings.iter().any(is_omitted);
    if let Some(counts) = describe_summary(&Summary::of(&findings)) {
        let omitted = if is_complete { "" } else { "; these tools are omitted" };
        eprint_progress(&format!("{counts}{omitted}"));
    }
    is_complete
}
