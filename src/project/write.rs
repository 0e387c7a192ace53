//! Files written whole or not at all.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Result, Write};
use std::path::{Path, PathBuf};

/// Puts `bytes` in the place of what the file at `path` holds: beside it first, then under its name in one step, so
/// that nobody ever reads a half. A symbolic link is followed, permissions and, where that is allowed, the owner are kept;
/// another hard link to the file goes on holding what it held.
///
/// # Errors
/// When it does not exist, may not be written, or its folder takes no new file; it is then as it was.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let path = std::fs::canonicalize(path)?;
    let metadata = std::fs::metadata(&path)?;
    // The folder alone decides about a rename; the file's own word counts, too.
    if metadata.permissions().readonly() {
        return Err(Error::new(ErrorKind::PermissionDenied, "it is read-only"));
    }
    OpenOptions::new().write(true).open(&path)?;
    let beside = beside(&path);
    let written = write_new(&beside, bytes, &metadata).and_then(|()| std::fs::rename(&beside, &path));
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

fn write_new(path: &Path, bytes: &[u8], like: &Metadata) -> Result<()> {
    // Of a process of this number that was killed.
    let _ = std::fs::remove_file(path);
    let mut file = File::create_new(path)?;
    keep_owner(path, like);
    file.set_permissions(like.permissions())?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Who mends somebody's file as root does not take it from them.
#[cfg(unix)]
fn keep_owner(path: &Path, like: &Metadata) {
    use std::os::unix::fs::MetadataExt;

    let _ = std::os::unix::fs::chown(path, Some(like.uid()), Some(like.gid()));
}

#[cfg(not(unix))]
fn keep_owner(_: &Path, _: &Metadata) {}
