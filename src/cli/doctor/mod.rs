//! `deftool doctor`: diagnoses the set-up. Runs no script and sends no request to a model.
//!
//! Each submodule is one check and returns lines. They run in order of dependency: machine, project, permissions, file
//! watching, servers, editor. The lines go to stdout; the exit code is 1 if one of them is an error.

mod editor;
mod files;
mod line;
mod machine;
mod managed;
mod model;
mod permissions;
mod project;
mod server;
mod watching;

use serde::Serialize;

use super::args::DoctorOptions;
use super::command::{CliError, Exit, command_dirs};
use super::output::{paint, print_json, print_styled};
pub(super) use files::find_program;
use line::{Level, Line};

/// The output of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    version: u32,
    /// Whether there are no errors.
    ok: bool,
    checks: &'a [Line],
}

pub(super) fn run(options: &DoctorOptions) -> Result<Exit, CliError> {
    let dirs = command_dirs(options.project.as_deref())?;
    let mut lines = vec![machine::check()];
    let (generation, project_lines) = project::check(&dirs);
    lines.extend(project_lines);
    if let Some(generation) = &generation {
        lines.push(permissions::check(generation));
        lines.extend(files::check(generation));
    }
    lines.push(permissions::check_state());
    lines.extend(watching::check(generation.as_ref()));
    lines.extend(server::check(options, generation.as_ref())?);
    lines.extend(editor::check());
    let errors = lines.iter().filter(|line| line.level == Level::Error).count();
    if options.json {
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
