//! `deftool check`: checks specs, scripts and workers.

mod fix;
mod online;
mod projects;
mod report;
mod selection;
mod watch;

use std::path::{Path, PathBuf};

use clap::Args;
use deftool_lang::schema::Target;
use deftool_mcp::Offer;
use deftool_project::{Input, Load, LoadOptions, OfferedTools, Overlay, load_with, read_stream};
use deftool_script::can_analyse_scripts;
use serde_json::json;

use crate::cli::options::{FormatOptions, ProjectOptions, target};
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::analyzer::{MISSING_ANALYZER, find_analyzer};
use crate::cli::project::inputs::{CommandDirs, inputs_of, refuse_nothing};
use crate::cli::project::preview;
use crate::cli::terminal::output::{clean, eprint_progress};
use crate::cli::worker::offer::offer_of_named;
use fix::FixOptions;
use fix::FixRun;
use projects::ProjectsOptions;
use report::Format;
use selection::Selection;
use selection::SelectionOptions;

#[allow(clippy::struct_excessive_bools)] // each is a flag
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool check
  deftool check --fix
  deftool check specs/weather.eld --target openai,gemini
  deftool check --project-glob 'packages/*'
  deftool check --select DT2 --ignore idle-description
  deftool check tools.json --target openai
  deftool check --mcp 'uvx mcp-server-time'
  deftool check --format github --strict")]
pub(in crate::cli) struct CheckOptions {
    /// Spec files, scripts, JSON files with a list of tools, folders or projects; `-` reads stdin [default: the project
    /// around the current folder, and those below it]
    pub(in crate::cli) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) projects: ProjectsOptions,
    /// File name of stdin, for an editor buffer that is not saved
    #[arg(long, hide_short_help = true, value_name = "NAME", default_value = "stdin.eld")]
    pub(in crate::cli) stdin_filename: PathBuf,
    #[command(flatten)]
    pub(in crate::cli) format: FormatOptions<Format>,
    /// Also report schema keywords that these APIs drop, weaken or reject
    #[arg(long = "target", value_parser = target(), value_name = "TARGET", value_delimiter = ',')]
    pub(in crate::cli) targets: Vec<Target>,
    /// Also check the types of scripts; a preview that requires the program `deftool-analyze`
    #[arg(long, hide_short_help = true)]
    pub(in crate::cli) types: bool,
    /// Also start or contact the MCP servers, which must be trusted, and check what they offer
    #[arg(long, hide_short_help = true, conflicts_with_all = ["fixing", "watch"])]
    pub(in crate::cli) online: bool,
    /// Start this MCP server, or contact it at a URL, and check the tools that it lists
    #[arg(long, value_name = "COMMAND|URL", conflicts_with_all = ["fixing", "watch", "globs"])]
    pub(in crate::cli) mcp: Vec<String>,
    /// Exit with 1 if there are warnings
    #[arg(long)]
    pub(in crate::cli) strict: bool,
    #[command(flatten)]
    pub(in crate::cli) selection: SelectionOptions,
    /// Exit with 0 even if there are errors
    #[arg(long, hide_short_help = true, conflicts_with_all = ["strict", "fixing"])]
    pub(in crate::cli) exit_zero: bool,
    #[command(flatten)]
    pub(in crate::cli) fixing: FixOptions,
    /// Check again after each change
    #[arg(short, long, conflicts_with = "fixing")]
    pub(in crate::cli) watch: bool,
    #[command(flatten)]
    pub(in crate::cli) project: ProjectOptions,
}

pub(in crate::cli) fn run(options: &CheckOptions) -> Result<Exit, CliError> {
    let dirs = options.project.dirs()?;
    let mut load_options = options.load_options()?;
    let selection = Selection::of(&options.selection, &dirs.current)?;
    let mut inputs = if options.paths.iter().any(|path| path == Path::new("-")) {
        vec![options.read_stdin(&dirs, &mut load_options.overlay)?]
    } else if options.paths.is_empty() && !options.mcp.is_empty() {
        Vec::new()
    } else {
        let paths = options.projects.paths(&options.paths, &dirs)?;
        if options.watch {
            return watch::run(options, &paths, selection, &dirs);
        }
        inputs_of(&paths, &dirs.project)?
    };
    if !options.mcp.is_empty() {
        inputs.push(offers(&options.mcp, &dirs.project)?);
    }
    let fixes = FixRun {
        inputs: &inputs,
        from: &dirs.current,
        selection: &selection,
        with_unsafe: options.fixing.unsafe_fixes,
    };
    if options.fixing.diff {
        return fixes.print_changes(load_options, options.format.value);
    }
    let (load, all_applied) = if options.fixing.fix {
        fixes.apply_all(load_options)?
    } else {
        let mut load = load_with(&inputs, &dirs.current, &load_options)?;
        if options.online {
            online::check(&mut load, &options.targets)?;
        }
        selection.apply(&mut load);
        (load, true)
    };
    refuse_nothing(&options.paths, &load)?;
    announce_previews(options.types, &load);
    report::print_report(&load, options.format.value, options.strict);
    report::eprint_summary(&load, options.format.value);
    if !can_analyse_scripts() {
        eprint_progress(
            "note: the parameters and globals of scripts were not checked: unknown version of Luau bytecode",
        );
    }
    let failed = !all_applied || report::fails(&load, options.strict);
    // The process ends, which frees a large project at once.
    std::mem::forget(load);
    Ok(if failed && !options.exit_zero { Exit::Failed } else { Exit::Clean })
}

impl CheckOptions {
    /// Reads stdin as the content of `--stdin-filename`, so that an editor can check an unsaved buffer in its project.
    fn read_stdin(&self, dirs: &CommandDirs, overlay: &mut Overlay) -> Result<Input, CliError> {
        if self.paths.len() > 1 || self.fixing.fix || self.fixing.diff || self.watch {
            let message = "`-` (stdin) cannot be combined with other paths, --fix, --diff or --watch";
            return Err(CliError::Usage(String::from(message)));
        }
        let name = self.stdin_filename.to_string_lossy();
        let Some(text) = read_stream(&name, std::io::stdin())?.into_text() else {
            return Err(CliError::Usage(String::from("stdin is not UTF-8")));
        };
        let path = dirs.current.join(&self.stdin_filename);
        overlay.set(&path, text);
        Ok(Input::of_file(path)?)
    }

    /// Returns the load options.
    ///
    /// # Errors
    /// If `--types` is set and the analyzer is not installed.
    pub(in crate::cli) fn load_options(&self) -> Result<LoadOptions, CliError> {
        Ok(LoadOptions {
            with_scripts: true,
            reads_lists: true,
            targets: self.targets.clone(),
            analyzer: if self.types { Some(required_analyzer()?) } else { None },
            raises_denied: true,
            ..LoadOptions::default()
        })
    }
}

/// Starts or contacts the MCP servers that the user named, and returns the tools that they list.
///
/// # Errors
/// If one does not list its tools.
fn offers(servers: &[String], folder: &Path) -> Result<Input, CliError> {
    let mut offers = Vec::new();
    for server in servers {
        let Offer { raw, missing, .. } = offer_of_named(server, folder)?;
        let text = format!("{:#}", json!({"tools": raw}));
        offers.push(OfferedTools { server: public_name(server), text, problem: missing });
    }
    Ok(Input { offers, ..Input::default() })
}

/// Returns a command, or a URL without its user, password and query, which may be secret.
fn public_name(server: &str) -> String {
    let shown = clean(server);
    let Some((scheme, rest)) = shown.split_once("://").filter(|(scheme, _)| scheme.starts_with("http"))
    else {
        return shown;
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    format!("{scheme}://{}{path}", authority.rsplit('@').next().unwrap_or_default())
}

/// Warns about previews that are used without being enabled.
fn announce_previews(checks_types: bool, load: &Load) {
    if checks_types {
        preview::announce("script-types", "`--types`", load);
    }
}

/// Returns the analyzer.
fn required_analyzer() -> Result<PathBuf, CliError> {
    find_analyzer().ok_or_else(|| CliError::Usage(format!("--types requires {MISSING_ANALYZER}")))
}
