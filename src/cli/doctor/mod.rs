//! `deftool doctor`: diagnoses the set-up. Runs no script and sends no request to a model.
//!
//! Each submodule is one check and returns lines. They run in order of dependency: machine, project, permissions, file
//! watching, servers, editor. The lines go to stdout; the exit code is 1 if one of them is an error.

mod editor;
mod files;
mod machine;
mod managed;
mod model;
mod permissions;
mod project;
mod server;
mod watching;

use deftool_lang::text::{count, one_line};
use serde::Serialize;

use super::args::DoctorOptions;
use super::output::{paint, print_json, print_styled};
use super::{CliError, Exit, command_dirs};

/// The severity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    Warning,
    Error,
}

/// A result of a check.
#[derive(Debug, Serialize)]
struct Line {
    check: &'static str,
    level: Level,
    message: String,
    /// The suggested action.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

impl Line {
    fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, message: one_line(message.into()), advice: None }
    }

    fn warning(check: &'static str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        let advice = Some(one_line(advice.into()));
        Self { check, level: Level::Warning, message: one_line(message.into()), advice }
    }

    fn error(check: &'static str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { level: Level::Error, ..Self::warning(check, message, advice) }
    }
}

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

/// Returns the value of an environment variable, unless it is blank.
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// Maximum number of names in a list.
const MAX_NAMES: usize = 8;

/// Formats names, as in `a, b and 3 more`.
fn list(names: &[String]) -> String {
    let shown = names.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Formats a number, as in `3 tools` or `no tool`.
fn counted(number: usize, word: &str) -> String {
    if number == 0 { format!("no {word}") } else { count(number, word) }
}
