//! `deftool man`: writes the manual pages.

use std::io;
use std::path::Path;

use clap::{Args, Command};
use clap_mangen::Man;
use deftool_process::files::Readers;

use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::outputs::write_output;

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
    let mut command = super::command().disable_help_subcommand(true);
    command.build();
    write_pages(&command, folder).map_err(unwritable)?;
    Ok(Exit::Clean)
}

/// Writes the page of a command and those of its subcommands.
fn write_pages(command: &Command, folder: &Path) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        write_pages(subcommand, folder)?;
    }
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    write_output(&folder.join(page.get_filename()), &text, Readers::Default)
}
