//! `deftool lsp`: serves editors over the Language Server Protocol, on stdin and stdout.

use std::io::IsTerminal;

use clap::Args;
use deftool_lsp::{End, serve};
use deftool_script::AnalyzerProcess;

use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::analyzer::{MISSING_ANALYZER, find_analyzer};
use crate::cli::terminal::output::eprint_line;

#[derive(Debug, Args)]
#[command(after_help = "\
An editor starts this command and sends messages on stdin. It reports findings of unsaved texts, completes and renames. It \
executes nothing of a project. The program `deftool-analyze`, if it is installed, adds types and completion in scripts.

Examples:
  deftool lsp")]
pub(in crate::cli) struct LspOptions {
    /// Accepted for editors that add it; the server always uses stdin and stdout
    #[arg(long)]
    stdio: bool,
}

/// Runs the command. It fails if the client ends the connection without a `shutdown` request.
pub(in crate::cli) fn run(_: &LspOptions) -> Result<Exit, CliError> {
    if std::io::stdin().is_terminal() {
        eprint_line("note: an editor starts this command and sends messages on stdin; press Ctrl-C to stop");
    }
    let analyzer = match find_analyzer() {
        Some(program) => Ok(Box::new(AnalyzerProcess::of_editor(program)) as Box<_>),
        None => Err(format!("completion and types in scripts require {MISSING_ANALYZER}")),
    };
    let (input, output) = (std::io::stdin(), std::io::stdout().lock());
    Ok(match serve(input, output, env!("CARGO_PKG_VERSION"), analyzer) {
        End::Shutdown => Exit::Clean,
        End::WithoutShutdown => Exit::Failed,
    })
}
