//! `deftool demo`: shows the main commands in a temporary project, without a network and a model.

use clap::Args;
use std::path::PathBuf;
use std::process::Command;

use anstyle::AnsiColor;

use super::init::RECORDING;
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::generated::write_file;
use crate::cli::terminal::output::{paint, print_styled};

#[derive(Debug, Args)]
pub(in crate::cli) struct DemoOptions {}

/// A spec with a mistake.
const SPEC: &str = "\
(deftool
 :name \"roll\"
 :description \"Roll a die.\"
 :args ((:name \"sides\" :type int :description \"From 2 to 100.\")))
";

/// What to show: an explanation, and the arguments of a command.
const STEPS: [(&str, &[&str]); 5] = [
    ("A project: a spec and a script for each tool.", &["init"]),
    ("A mistake in a spec is found before an API rejects it.", &["check", "roll.eld"]),
    ("The arguments that a model sends are validated.", &["call", "word_count", r#"{"text": 12}"#]),
    (
        "Valid arguments reach the script, which runs in a sandbox.",
        &["call", "word_count", "text=to be or not to be"],
    ),
    (
        "A request: the model calls the tool, then answers. Its replies come from a recording; the rest is real.",
        &["run", "--replay", RECORDING, "--paced"],
    ),
];

pub(in crate::cli) fn run(_: &DemoOptions) -> Result<Exit, CliError> {
    let folder = TemporaryFolder::create()?;
    write_file(&folder.path.join("roll.eld"), SPEC)?;
    let program = std::env::current_exe().map_err(CliError::Runtime)?;
    for (what, arguments) in STEPS {
        let shown: Vec<String> = arguments.iter().map(|argument| quoted(argument)).collect();
        let comment = paint(&format!("# {what}"), AnsiColor::Green);
        print_styled(&format!("{comment}\n$ deftool {}\n", shown.join(" ")));
        // A failure is part of what is shown.
        Command::new(&program)
            .args(arguments)
            .current_dir(&folder.path)
            .status()
            .map_err(CliError::Runtime)?;
        print_styled("\n");
    }
    let next = "deftool init my-agent && cd my-agent && deftool check && deftool call word_count text=hello";
    print_styled(&format!("{}\n$ {next}\n", paint("# Your turn:", AnsiColor::Green)));
    Ok(Exit::Clean)
}

/// Quotes an argument for a shell, if necessary.
fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=".contains(c);
    if argument.chars().all(is_plain) { argument.to_owned() } else { format!("'{argument}'") }
}

/// A folder that is removed when it is dropped.
struct TemporaryFolder {
    path: PathBuf,
}

impl TemporaryFolder {
    fn create() -> Result<Self, CliError> {
        let path = std::env::temp_dir().join(format!("deftool-demo-{:016x}", fastrand::u64(..)));
        let unwritable = |source| CliError::Unwritable { path: path.display().to_string(), source };
        // Fails if the folder exists.
        std::fs::create_dir(&path).map_err(unwritable)?;
        Ok(Self { path })
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
