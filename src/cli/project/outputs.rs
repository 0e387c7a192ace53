//! The outputs of commands: the one function that writes them.

use std::io::{Error, Result};
use std::path::Path;

use deftool_process::files::{self, Readers};
use deftool_project::find_root;

use crate::cli::terminal::output::clean;

/// Writes an output as a whole ([`files::write_output`]).
///
/// # Errors
/// Also if a folder of the path is a link that leads out of a project: the author of the project chose its target.
pub(in crate::cli) fn write_output(path: &Path, bytes: &[u8], readers: Readers) -> Result<()> {
    check_folders(path)?;
    files::write_output(path, bytes, readers)
}

/// Refuses a path through a link in a project that leads out of it.
fn check_folders(path: &Path) -> Result<()> {
    if files::is_stream(path) {
        return Ok(());
    }
    let path = std::path::absolute(path)?;
    for link in path.ancestors().skip(1).filter(|folder| folder.is_symlink()) {
        let Some(Ok(root)) = link.parent().map(find_root) else { continue };
        let is_inside = std::fs::canonicalize(link)?.starts_with(std::fs::canonicalize(&root)?);
        if !is_inside {
            let link = clean(&link.display().to_string());
            return Err(Error::other(format!(
                "`{link}` is a link that leads out of its project; name its target instead"
            )));
        }
    }
    Ok(())
}
