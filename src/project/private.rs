//! Files that are their user's alone: recordings and logs hold conversations.

use std::fs::{File, OpenOptions};
use std::path::Path;

/// A new or emptied file that nobody else may read.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn create_private(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // One that was there has its own mode; a terminal, a pipe or a device keeps it.
    #[cfg(unix)]
    if file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        // Of somebody else's file that its owner lets this user write, nothing more can be had; nor of a file system
        // without permissions.
        let _ = file.set_permissions(mode);
    }
    Ok(file)
}
