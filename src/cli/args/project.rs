//! Options of the commands that are about a project as a whole.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(in crate::cli) struct InitOptions {
    /// Folder to make it in
    #[arg(default_value = ".")]
    pub(in crate::cli) folder: PathBuf,
    /// Copy the tools that ship with deftool: files, search, programs, git, the web, time, arithmetic
    #[arg(long)]
    pub(in crate::cli) toolbox: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct NewOptions {
    /// The tool's name
    pub(in crate::cli) name: String,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct WatchOptions {
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(in crate::cli) struct TrustOptions {
    #[command(subcommand)]
    pub(in crate::cli) action: Option<TrustAction>,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum TrustAction {
    /// Trust a project with all that its specs want now
    Grant {
        /// Folder of the project, or a folder inside it; none: the current folder
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
    /// Trust a project no longer
    Revoke {
        /// Folder of the project, or a folder inside it; none: the current folder
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
        /// Every project
        #[arg(long, conflicts_with = "folder")]
        all: bool,
    },
}
