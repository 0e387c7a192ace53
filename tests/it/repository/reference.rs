//! `docs/reference.md` has the help of every command, `docs/preview.md` lists the preview features, and `docs/commands.md`
//! and `docs/telemetry.md` name the environment variables that the code reads. `UPDATE_EXPECT=1` regenerates the first two.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use deftool_lang::spec::{PREVIEWS, PreviewFeature, PreviewState};

use crate::support::project::Project;
use crate::support::repository::repository_files;

/// Beginnings of the names of variables that a user sets.
const PREFIXES: [&str; 6] = ["ANTHROPIC_", "CLICOLOR", "DEFTOOL_", "NO_COLOR", "OPENAI_", "OTEL_"];

/// Variables of builds, and those that a command passes to its program.
const INTERNAL: [&str; 3] = ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "DEFTOOL_COMMIT"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn help(project: &Project, command: &[String]) -> String {
    let arguments: Vec<&str> = std::iter::once("help").chain(command.iter().map(String::as_str)).collect();
    let output = project.command(&arguments).env("COLUMNS", "100").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the names of the subcommands in a help text: the first words of the indented lines before the options.
fn subcommands(help: &str) -> Vec<String> {
    let (before, _) = help.split_once("\nOptions:").unwrap();
    let lines = before.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| !name.starts_with(['<', '[']) && *name != "help").map(str::to_owned).collect()
}

/// Appends the section of a command and those of its subcommands.
fn section(project: &Project, command: &[String], page: &mut String) {
    let text = help(project, command);
    write!(page, "\n## deftool {}\n\n```text\n{}\n```\n", command.join(" "), text.trim_end()).unwrap();
    if text.contains("\nCommands:\n") {
        for name in subcommands(&text) {
            section(project, &[command, &[name]].concat(), page);
        }
    }
}

#[test]
fn the_reference_has_the_help_of_every_command() {
    let project = Project::empty();
    let mut page = String::from(
        "# Reference of the commands\n\nThe output of `deftool help COMMAND`, generated. [Commands](commands.md) is the guide.\n",
    );
    let names = subcommands(&help(&project, &[]));
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        section(&project, &[name], &mut page);
    }
    check_page("docs/reference.md", &page);
}

/// Compares a generated page with its file.
fn check_page(name: &str, page: &str) {
    let path = root().join(name);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(page == written, "{name} differs from the code; run with UPDATE_EXPECT=1 to update it");
}

#[test]
fn the_page_of_preview_features_matches_the_code() {
    let mut page = String::from(
        "# Preview features\n\n\
         A preview is a key, a command or an option that can be used before it is stable: it may change or leave in any version,\n\
         and the [changelog](../CHANGELOG.md) says when. `--preview NAME` enables one for a command, and\n\
         `(defproject :preview (NAME …))` in a spec file for the project. A preview also works without it, with a warning.\n\n\
         | name | feature | since | state |\n|---|---|---|---|\n",
    );
    for PreviewFeature { name, description, since, state } in PREVIEWS {
        let state = match state {
            PreviewState::Preview => String::from("preview"),
            PreviewState::Stable(version) => format!("stable since {version}"),
            PreviewState::Retired(version) => format!("removed in {version}"),
        };
        writeln!(page, "| `{name}` | {description} | {since} | {state} |").unwrap();
    }
    check_page("docs/preview.md", &page);
}

/// Returns the words of a text that are names of environment variables.
fn variables(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let names = words.filter(|word| PREFIXES.iter().any(|prefix| word.starts_with(prefix)));
    names.filter(|word| !word.ends_with('_') && !INTERNAL.contains(word)).map(str::to_owned).collect()
}

#[test]
fn every_environment_variable_is_documented() {
    let mut read = BTreeSet::new();
    for file in repository_files(&["src/*.rs", "crates/*/src/*.rs", ":!crates/test-support"]) {
        let text = fs::read_to_string(file).unwrap();
        let code = text.lines().take_while(|line| *line != "#[cfg(test)]");
        let strings = code.flat_map(|line| line.split('"').skip(1).step_by(2));
        let names = strings.filter(|text| text.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
        read.extend(names.flat_map(variables));
    }
    let pages =
        ["commands.md", "telemetry.md"].map(|page| fs::read_to_string(root().join("docs").join(page)));
    let documented = variables(&pages.map(Result::unwrap).concat());
    let missing: Vec<&String> = read.difference(&documented).collect();
    assert!(read.len() > 5 && missing.is_empty(), "read, but not documented: {missing:?}");
}
