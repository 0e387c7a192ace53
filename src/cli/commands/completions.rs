//! `deftool completions`: prints shell completions.

use clap::Args;

use crate::cli::outcome::{CliError, Exit};
use crate::cli::terminal::output::print;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool completions bash > ~/.local/share/bash-completion/completions/deftool
  deftool completions fish > ~/.config/fish/completions/deftool.fish")]
pub(in crate::cli) struct CompletionsOptions {
    /// The shell
    pub(in crate::cli) shell: clap_complete::Shell,
}

pub(super) fn run(options: &CompletionsOptions) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut super::command(), "deftool", &mut script);
    print(&String::from_utf8_lossy(&script));
    Ok(Exit::Clean)
}
