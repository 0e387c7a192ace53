//! Files written whole or not at all.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{Error, ErrorKind, Result, Write};
use std::path::{Path, PathBuf};

/// Puts `bytes` in the place of what the file at `path` holds: beside it first, then under its name in one step, so
/// that nobody ever reads a half. A link is followed, permissions are kept.
///
/// # Errors
/// When it does not exist, may not be written, or its folder takes no new file; it is then as it was.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let path = std::fs::canonicalize(path)?;
    let permissions = std::fs::metadata(&path)?.permissions();
    // The folder alone decides about a rename; the file's own word counts, too.
    if permissions.readonly() {
        return Err(Error::new(ErrorKind::PermissionDenied, "it is read-only"));
    }
    OpenOptions::new().write(true).open(&path)?;
    let beside = beside(&path);
    let written = write_new(&beside, bytes, permissions).and_then(|()| std::fs::rename(&beside, &path));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

fn beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}

fn write_new(path: &Path, bytes: &[u8], permissions: Permissions) -> Result<()> {
    // Of a process of this number that was killed.
    let _ = std::fs::remove_file(path);
    let mut file = File::create_new(path)?;
    file.set_permissions(permissions)?;
    file.write_all(bytes)?;
    file.sync_all()
}
