//! `deftool doctor`: what is wrong with this set-up, in one screen. No script is run and no model asked.
//!
//! One check a file; each returns lines, in the order of what follows from what: this machine, the project, what its tools may
//! use, how changes are heard of, the server, the editor. stdout is the lines, exit 1 if one of them is an error.

mod editor;
mod files;
mod machine;
mod managed;
mod model;
mod permissions;
mod project;
mod server;
mod watching;

use serde::Serialize;

use super::args::DoctorOptions;
use super::output::{paint, print_json, print_painted};
use super::{CliError, Exit, locate};
use crate::text::{count, one_line};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    Warning,
    Error,
}

/// What one check found.
#[derive(Debug, Serialize)]
struct Line {
    check: &'static str,
    level: Level,
    message: String,
    /// What to do next.
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

/// The contract of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    version: u32,
    /// Whether nothing is an error.
    ok: bool,
    checks: &'a [Line],
}

pub(super) fn run(options: &DoctorOptions) -> Result<Exit, CliError> {
    let place = locate(options.project.as_deref())?;
    let mut lines = vec![machine::check()];
    let (found, told) = project::check(&place);
    lines.extend(told);
    if let Some(generation) = &found {
        lines.push(permissions::check(generation));
        lines.extend(files::check(generation));
    }
    lines.push(permissions::check_state());
    lines.extend(watching::check(found.as_ref()));
    lines.extend(server::check(options, found.as_ref())?);
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

fn show(line: &Line) {
    let (word, color) = match line.level {
        Level::Ok => ("ok", anstyle::AnsiColor::Green),
        Level::Warning => ("warning", anstyle::AnsiColor::Yellow),
        Level::Error => ("error", anstyle::AnsiColor::Red),
    };
    // Padded before it is painted: what paints has no width.
    let word = paint(&format!("{word:<7}"), color);
    print_painted(&format!("{word}  {:<11} {}\n", line.check, line.message));
    if let Some(advice) = &line.advice {
        print_painted(&format!("{:21} next: {advice}\n", ""));
    }
}

/// The value of a variable that holds more than blanks.
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// The names that are listed before the rest is only counted.
const MAX_NAMES: usize = 8;

/// `a, b and 3 more`.
fn list(names: &[String]) -> String {
    let shown = names.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// `3 tools`, `no tool`.
fn counted(number: usize, word: &str) -> String {
    if number == 0 { format!("no {word}") } else { count(number, word) }
}
