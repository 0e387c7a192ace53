//! The report of `deftool check` in each format.

use std::collections::HashSet;

use clap::ValueEnum;
use deftool_lang::diagnostic::{Diagnostic, Summary, render};
use deftool_lang::text::count;
use deftool_project::{Load, ScriptState, rules};

use crate::cli::terminal::output::{
    MAX_FINDINGS, describe_omitted, describe_summary, eprint_progress, escape_ci_commands, print, print_all,
    print_findings, print_json,
};

/// The output formats of `deftool check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Format {
    /// Text with source lines
    Human,
    /// One line per finding, for editors
    Concise,
    /// One JSON object
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Workflow commands for GitHub annotations
    Github,
    /// JUnit XML, for GitLab and Jenkins
    Junit,
}

/// Writes the findings to stdout.
pub(in crate::cli) fn print_report(load: &Load, format: Format, strict: bool) {
    match format {
        Format::Human => print_findings(&load.findings, &load.sources),
        Format::Concise => print_each(load, usize::MAX, |finding, sources| {
            escape_ci_commands(&render::render_concise(finding, sources)).into_owned()
        }),
        Format::Github => {
            print_each(load, MAX_FINDINGS, render::render_github);
            if let Some(more) = describe_omitted(load.findings.len()) {
                print(&format!("{more}\n"));
            }
        }
        Format::Json => {
            print_json(&render::json_report(&load.findings, &load.sources), true);
        }
        Format::Sarif => {
            print_json(&render::sarif_log(&load.findings, &load.sources, &rules::all()), true);
        }
        Format::Junit => {
            print(&render::junit_report(&load.findings, &load.sources, &checked_files(load), strict));
        }
    }
}

/// Writes the summary to stderr, unless the output contains it.
pub(in crate::cli) fn eprint_summary(load: &Load, format: Format) {
    match format {
        // The output in these formats contains no summary, so the summary goes to stderr.
        Format::Human | Format::Github | Format::Sarif | Format::Junit => eprint_progress(&describe(load)),
        Format::Concise | Format::Json => {}
    }
}

/// Returns whether the findings cause exit code 1.
pub(in crate::cli) fn fails(load: &Load, strict: bool) -> bool {
    let summary = Summary::of(&load.findings);
    summary.errors > 0 || (strict && summary.warnings > 0)
}

/// Describes the result, as in ``2 tools in 1 file: 1 error; `--fix` repairs 1``.
pub(in crate::cli) fn describe(load: &Load) -> String {
    let checked = format!("{} in {}", count(load.tools.len(), "tool"), describe_sources(load));
    let projects: HashSet<_> = load.checked.iter().filter_map(|source| load.root_of(*source)).collect();
    let checked = match projects.len() {
        0 | 1 => checked,
        several => format!("{checked} of {several} projects"),
    };
    match describe_summary(&Summary::of(&load.findings)) {
        Some(counts) => format!("{checked}: {counts}{}", describe_fixes(load)),
        None if load.is_empty() => format!("note: {checked}: nothing was checked"),
        None => format!("{checked}: all good"),
    }
}

/// Describes what was checked, as in `1 file and 2 MCP servers`.
fn describe_sources(load: &Load) -> String {
    let (files, servers): (Vec<_>, Vec<_>) =
        load.checked.iter().filter_map(|source| load.sources.get(*source)).partition(|file| file.is_file());
    let servers = (!servers.is_empty()).then(|| count(servers.len(), "MCP server"));
    let files = (servers.is_none() || !files.is_empty()).then(|| count(files.len(), "file"));
    files.into_iter().chain(servers).collect::<Vec<_>>().join(" and ")
}

fn describe_fixes(load: &Load) -> String {
    let fixes = load.findings.iter().filter(|finding| load.files.contains_key(&finding.primary.source));
    let fixes: Vec<bool> = fixes.filter_map(|finding| finding.fix.as_ref()).map(|fix| fix.is_safe).collect();
    let safe = fixes.iter().filter(|is_safe| **is_safe).count();
    match (safe, fixes.len() - safe) {
        (0, 0) => String::new(),
        (0, unsafe_fixes) => format!("; `--fix --unsafe-fixes` repairs {unsafe_fixes}"),
        (safe, 0) => format!("; `--fix` repairs {safe}"),
        (safe, unsafe_fixes) => {
            format!("; `--fix` repairs {safe}, with `--unsafe-fixes` {}", safe + unsafe_fixes)
        }
    }
}

fn print_each(load: &Load, limit: usize, render: fn(&Diagnostic, &deftool_lang::text::Sources) -> String) {
    print_all(load.findings.iter().take(limit).map(|finding| render(finding, &load.sources) + "\n"));
}

/// Returns the checked spec files and the scripts without errors.
fn checked_files(load: &Load) -> Vec<&str> {
    let specs = load.checked.iter().filter_map(|source| load.sources.get(*source));
    let scripts = load.tools.iter().filter_map(|loaded| match &loaded.script {
        ScriptState::Ready(script) if script.command.is_none() => Some(&*script.file),
        ScriptState::Ready(_) | ScriptState::None | ScriptState::Broken(_) => None,
    });
    specs.map(|file| file.name.as_str()).chain(scripts).collect()
}
