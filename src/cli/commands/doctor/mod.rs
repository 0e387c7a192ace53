//! `deftool doctor`: diagnoses the set-up. Runs no script, and sends requests to a model only with `--try`.
//!
//! Each submodule is one check and returns lines. They run in order of dependency: machine, project, permissions, file
//! watching, servers, editor, model. The lines go to stdout; the exit code is 1 if one of them is an error.

mod editor;
mod files;
mod line;
mod machine;
mod managed;
mod model;
mod permissions;
mod project;
mod server;
mod try_model;
mod watching;

use clap::Args;
use serde::Serialize;

use crate::cli::options::{FormatOptions, ProjectOptions};
use crate::cli::outcome::{CliError, Exit};
use crate::cli::terminal::output::{paint, print_json, print_styled};
use line::{Level, Line};

#[derive(Debug, Args)]
#[command(after_help = "\
Runs no script. Sends no request to a model, unless --try is given.

Examples:
  deftool doctor
  deftool doctor --try
  deftool doctor --worker local --json")]
pub(in crate::cli) struct DoctorOptions {
    /// Worker whose server is checked [default: all workers]
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) worker: Option<String>,
    /// Base URL of the server, including /v1; overrides the worker's [env: OPENAI_BASE_URL]
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) endpoint: Option<String>,
    /// Model name; overrides the worker's
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) model: Option<String>,
    /// Also send at most two prompts with a harmless tool to the worker's model, and report whether it is called
    #[arg(long = "try")]
    pub(in crate::cli) try_model: bool,
    #[command(flatten)]
    pub(in crate::cli) format: FormatOptions,
    #[command(flatten)]
    pub(in crate::cli) project: ProjectOptions,
}

/// The output of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    version: u32,
    /// Whether there are no errors.
    ok: bool,
    checks: &'a [Line],
}

pub(in crate::cli) fn run(options: &DoctorOptions) -> Result<Exit, CliError> {
    let dirs = options.project.dirs()?;
    let mut lines = vec![machine::check()];
    let (generation, project_lines) = project::check(&dirs);
    lines.extend(project_lines);
    let (user, user_lines) = project::check_user(&dirs, generation.is_some());
    lines.extend(user_lines);
    if let Some(generation) = &generation {
        // A tool in place of one of the user requires trust.
        let joined = user.clone().map(|user| generation.beside(user));
        lines.push(permissions::check(joined.as_ref().unwrap_or(generation)));
        lines.extend(files::check(generation));
    }
    lines.push(permissions::check_state());
    lines.extend(watching::check(generation.as_ref()));
    // Outside of projects, requests use the workers of the user.
    let with_workers = generation.as_ref().or(user.as_deref());
    lines.extend(server::check(options, with_workers)?);
    lines.extend(editor::check());
    if options.try_model {
        lines.extend(try_model::check(options)?);
    } else {
        lines.push(try_model::not_tried());
    }
    let errors = lines.iter().filter(|line| line.level == Level::Error).count();
    if options.format.is_json() {
        let report = Report { version: 1, ok: errors == 0, checks: &lines };
        print_json(&report, true);
    } else {
        lines.iter().for_each(show);
    }
    Ok(if errors == 0 { Exit::Clean } else { Exit::Failed })
}

/// Prints a line as text.
fn show(line: &Line) {
    let (word, color) = match line.level {
        Level::Ok => ("ok", anstyle::AnsiColor::Green),
        Level::Warning => ("warning", anstyle::AnsiColor::Yellow),
        Level::Error => ("error", anstyle::AnsiColor::Red),
    };
    // Pad before styling: escape codes would count as width.
    let word = paint(&format!("{word:<7}"), color);
    print_styled(&format!("{word}  {:<11} {}\n", line.check, line.message));
    if let Some(advice) = &line.advice {
        print_styled(&format!("{:21} help: {advice}\n", ""));
    }
}
