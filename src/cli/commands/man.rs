//! `deftool man`: writes the manual pages.

use clap::Args;

use crate::cli::outcome::{CliError, Exit};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool man ~/.local/share/man/man1
  man deftool-check")]
pub(in crate::cli) struct ManOptions {
    /// The folder; created if it is missing
    pub(in crate::cli) folder: std::path::PathBuf,
}

pub(super) fn run(options: &ManOptions) -> Result<Exit, CliError> {
    let folder = &options.folder;
    let unwritable = |source| CliError::Unwritable { path: folder.display().to_string(), source };
    std::fs::create_dir_all(folder).map_err(unwritable)?;
    clap_mangen::generate_to(super::command(), folder).map_err(unwritable)?;
    Ok(Exit::Clean)
}
