//! `deftool types`: generates Luau type definitions for scripts.

use std::path::Path;

use clap::Args;
use deftool_lang::diagnostic::{Diagnostic, Severity, Summary};
use deftool_lang::spec::Tool;
use deftool_project::{display_name, find_root, load_specs, resolve_inputs};
use deftool_script::definitions;
use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::{Map, Value, json};

use crate::cli::options::ProjectOptions;
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::generated::{OutputOptions, Put, read};
use crate::cli::terminal::output::{describe_summary, eprint_findings, eprint_progress};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool types --setup
  deftool types -o types/deftool.d.luau
  deftool types --check types/deftool.d.luau")]
pub(in crate::cli) struct TypesOptions {
    #[command(flatten)]
    pub(in crate::cli) output: OutputOptions,
    /// Write `types/deftool.d.luau` and the settings of luau-lsp in `.vscode/settings.json`
    #[arg(long, conflicts_with_all = ["output", "check"])]
    pub(in crate::cli) setup: bool,
    #[command(flatten)]
    pub(in crate::cli) project: ProjectOptions,
}

/// The definition file that `--setup` writes.
const DEFINITIONS: &str = "types/deftool.d.luau";

/// The settings that `--setup` extends.
const SETTINGS: &str = ".vscode/settings.json";

/// Prints or writes the definitions of all valid tools. Tools with errors are omitted and reported.
pub(in crate::cli) fn run(options: &TypesOptions) -> Result<Exit, CliError> {
    let dirs = options.project.dirs()?;
    let root = find_root(&dirs.project)?;
    let load = load_specs(&resolve_inputs(&[], &root)?, &dirs.current)?;
    let text = definitions(load.valid_tools().map(|loaded| -> &Tool { &loaded.tool }));
    let errors: Vec<Diagnostic> =
        load.findings.iter().filter(|finding| finding.severity == Severity::Error).cloned().collect();
    eprint_findings(&errors, &load.sources);
    if let Some(counts) = describe_summary(&Summary::of(&errors)) {
        eprint_progress(&format!("{counts}; these tools are omitted"));
    }
    let exit = |is_complete: bool| if is_complete && errors.is_empty() { Exit::Clean } else { Exit::Failed };
    if options.setup {
        set_up(&root, &text)?;
        return Ok(exit(true));
    }
    if let Some(output) = &options.output.output {
        let path = dirs.current.join(output);
        // A project may contain a link in place of the file: replace the link, and never overwrite its target.
        if path.is_symlink() && path.starts_with(&root) {
            let name = display_name(&path, &dirs.current);
            std::fs::remove_file(&path).map_err(|source| CliError::Unwritable { path: name, source })?;
        }
    }
    let put = options.output.put(&dirs.current, &text, |name| format!("deftool types -o {name}"))?;
    if put == Put::Created {
        eprint_progress(
            "next:    `deftool types --setup` adds it to the settings of luau-lsp; see docs/scripting.md",
        );
    }
    Ok(exit(put != Put::OutOfDate))
}

/// Writes the definitions and the settings for luau-lsp to the project in `root`.
fn set_up(root: &Path, text: &str) -> Result<(), CliError> {
    // Nobody named these paths: a project must not lead to files elsewhere.
    for name in ["types", DEFINITIONS, ".vscode", SETTINGS] {
        if root.join(name).is_symlink() {
            return Err(CliError::Usage(format!(
                "{name} is a link; replace it, or use `deftool types -o FILE`"
            )));
        }
    }
    let settings = read(&root.join(SETTINGS));
    let settings = settings.map_err(|source| CliError::Usage(format!("cannot read {SETTINGS}: {source}")))?;
    let settings = with_settings(settings.as_deref().unwrap_or_default())?;
    for (name, text) in [(DEFINITIONS, text), (SETTINGS, settings.as_str())] {
        OutputOptions::to_file(name).put(root, text, str::to_owned)?;
    }
    eprint_progress(&format!("other editors: start `luau-lsp lsp --definitions={DEFINITIONS}`"));
    Ok(())
}

/// Returns the settings with those of luau-lsp. Comments and other settings are kept.
///
/// # Errors
/// If the text is not an object, or sets one of them differently.
fn with_settings(text: &str) -> Result<String, CliError> {
    let wanted = [
        ("luau-lsp.platform.type", json!("standard")),
        ("luau-lsp.types.definitionFiles", json!({ "@deftool": DEFINITIONS })),
        ("luau-lsp.ignoreGlobs", json!(["**/*.d.luau"])),
    ];
    let text = if text.trim().is_empty() { "{\n}\n" } else { text };
    let parsed: Result<Map<String, Value>, _> =
        parse_to_serde_value(text.trim_start_matches('\u{feff}'), &ParseOptions::default());
    let known =
        parsed.map_err(|error| CliError::Usage(format!("{SETTINGS} is not an object of JSON: {error}")))?;
    let mut missing = Vec::new();
    for (key, value) in wanted {
        match known.get(key) {
            None => missing.push(format!("  \"{key}\": {value}")),
            Some(found) if *found == value => {}
            Some(found) => {
                let message =
                    format!("{SETTINGS} sets `{key}` to {found}; set it to {value} by hand, or remove it");
                return Err(CliError::Usage(message));
            }
        }
    }
    if missing.is_empty() {
        return Ok(text.to_owned());
    }
    let start = start_of_object(text);
    let (before, after) = text.split_at_checked(start).unwrap_or((text, ""));
    let end = if known.is_empty() { "" } else { "," };
    Ok(format!("{before}\n{}{end}{after}", missing.join(",\n")))
}

/// Returns the offset after the first brace that is not in a comment.
fn start_of_object(text: &str) -> usize {
    let mut rest = text;
    loop {
        let trimmed = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        let skipped = if trimmed.starts_with("//") {
            trimmed.find('\n')
        } else if trimmed.starts_with("/*") {
            trimmed.find("*/").map(|at| at + 2)
        } else {
            None
        };
        match skipped {
            Some(length) => rest = trimmed.get(length..).unwrap_or_default(),
            None => return text.len() - trimmed.len() + usize::from(trimmed.starts_with('{')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_added_once_and_others_are_kept() {
        let created = with_settings("").unwrap();
        assert_eq!(with_settings(&created).unwrap(), created);
        for (before, after) in [
            ("{}", "}"),
            ("// mine {\n{ \"a\": 1 // one\n}", ", \"a\": 1 // one\n}"),
            (
                "/* { */ {\"a\": {}, \"luau-lsp.platform.type\": \"standard\"}",
                ",\"a\": {}, \"luau-lsp.platform.type\": \"standard\"}",
            ),
        ] {
            let settings = with_settings(before).unwrap();
            assert!(settings.ends_with(after) && settings.contains("\"luau-lsp.ignoreGlobs\""), "{settings}");
            assert_eq!(with_settings(&settings).unwrap(), settings);
        }
        for (text, expected) in [
            ("[]", "is not an object of JSON"),
            ("{", "is not an object of JSON"),
            ("{\"luau-lsp.platform.type\": \"roblox\"}", "sets `luau-lsp.platform.type` to \"roblox\""),
        ] {
            let error = with_settings(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
