//! Files written so that a reader sees the old one or the new one, whole.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A name that is taken is tried again with the next number, this often.
const MAX_TRIES: u32 = 100;

/// Replaces the content of the file at `path`, or of the file that a link there leads to: `bytes` are written to a new
/// file beside it, which takes its permissions and then its name.
///
/// # Errors
/// When the file is not there or may not be written, its folder takes no new files, or the disk is full. The file is
/// then as it was.
pub fn replace_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let target = fs::canonicalize(path)?;
    // Renaming asks only the folder: whoever made the file read-only meant it.
    let permissions = OpenOptions::new().write(true).open(&target)?.metadata()?.permissions();
    let (beside, mut file) = create_beside(&target)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.set_permissions(permissions))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, &target));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

/// A new file in the same folder, hidden and with an ending that no command reads.
fn create_beside(target: &Path) -> std::io::Result<(PathBuf, File)> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let mut tries = 0;
    loop {
        let beside = target.with_file_name(format!(".{name}.{}-{tries}.tmp", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&beside) {
            Ok(file) => return Ok((beside, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && tries < MAX_TRIES => tries += 1,
            Err(error) => return Err(error),
        }
    }
}
