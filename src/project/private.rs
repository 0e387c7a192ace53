//! Files that are their user's alone: recordings and logs hold conversations.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read};
use std::path::Path;

/// A new file of `what`, or one of them that was there, emptied, that nobody else may read. Each begins with `beginning`.
///
/// # Errors
/// When it cannot be written, or holds something else, which is left as it is.
pub(crate) fn create_private(path: &Path, what: &str, beginning: &str) -> std::io::Result<File> {
    if std::fs::metadata(path).is_ok_and(|there| there.is_file() && there.len() > 0) {
        let mut head = Vec::new();
        File::open(path)?.take(beginning.len() as u64).read_to_end(&mut head)?;
        if head != beginning.as_bytes() {
            let why = format!("it holds something that is no {what}, and is kept; give another name");
            return Err(Error::new(ErrorKind::AlreadyExists, why));
        }
    }
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
