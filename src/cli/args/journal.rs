//! Options of the commands that use a journal.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{ScriptOptions, WorkerOptions};

#[derive(Debug, Args)]
#[command(after_help = "\
A reply that was interrupted is requested again. An interrupted call runs again only if the `:effect` of its tool is
`pure` or `keyed`.

Examples:
  deftool run \"Summarise the new issues.\" --journal issues.journal
  deftool resume issues.journal
  deftool resume issues.journal req_0123456789abcdef")]
pub(in crate::cli) struct ResumeOptions {
    /// Journal of `deftool run --journal` or `deftool rpc --journal`
    pub(in crate::cli) journal: PathBuf,
    /// Requests to continue [default: all that have not ended]
    #[arg(value_name = "ID")]
    pub(in crate::cli) ids: Vec<String>,
    #[command(flatten)]
    pub(in crate::cli) worker: WorkerOptions,
    /// Run all calls without confirmation prompts, including tools with :confirm
    #[arg(long)]
    pub(in crate::cli) yes: bool,
    /// Print events, one JSON object per line
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool requests list issues.journal
  deftool requests show issues.journal req_0123456789abcdef
  deftool requests prune issues.journal")]
pub(in crate::cli) struct RequestsOptions {
    #[command(subcommand)]
    pub(in crate::cli) action: RequestsAction,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum RequestsAction {
    /// List the requests of a journal
    #[command(after_help = "Examples:\n  deftool requests list issues.journal --json")]
    List {
        /// Journal
        journal: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the events of a request, one JSON object per line
    #[command(after_help = "Examples:\n  deftool requests show issues.journal req_0123456789abcdef")]
    Show {
        /// Journal
        journal: PathBuf,
        /// Request
        id: String,
    },
    /// Cancel requests that have not ended, so that `resume` does not continue them
    #[command(after_help = "Examples:\n  deftool requests cancel issues.journal req_0123456789abcdef")]
    Cancel {
        /// Journal
        journal: PathBuf,
        /// Requests
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
    },
    /// Remove the requests that have ended or are damaged
    #[command(after_help = "Examples:\n  deftool requests prune issues.journal")]
    Prune {
        /// Journal
        journal: PathBuf,
    },
}
