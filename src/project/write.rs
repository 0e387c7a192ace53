//! Files written whole or not at all.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Result, Write};
use std::path::{Path, PathBuf};

use super::read::BYTE_ORDER_MARK;

/// Puts the text `after` in the place of `before`, which the file at `path` must still hold; a byte order mark before it
/// stays.
///
/// # Errors
/// When it holds something else by now, and as [`replace_file`]; it is then as it was.
pub fn replace_text(path: &Path, before: &str, after: &str) -> Result<()> {
    let bytes = std::fs::read(path)?;
    let (mark, text) = match bytes.strip_prefix(BYTE_ORDER_MARK) {
        Some(text) => (BYTE_ORDER_MARK, text),
        None => (&[][..], bytes.as_slice()),
    };
    if text != before.as_bytes() {
        return Err(Error::other("it was changed meanwhile; try again"));
    }
    replace_file(path, &[mark, after.as_bytes()].concat())
}

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
    keep_owner(&file, like);
    file.set_permissions(like.permissions())?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Who mends somebody's file as root does not take it from them. The open file is meant and not its name, under which
/// somebody else may have put another by now.
#[cfg(unix)]
fn keep_owner(file: &File, like: &Metadata) {
    use std::os::unix::fs::MetadataExt;

    let _ = std::os::unix::fs::fchown(file, Some(like.uid()), Some(like.gid()));
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &Metadata) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_holds_something_else_by_now_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.eld");
        for (now, then) in [
            ("(a)\r\n", Some("(b)\r\n")),
            ("\u{feff}(a)\r\n", Some("\u{feff}(b)\r\n")),
            ("(a)\n", None),
            ("(a)\r\n(c)", None),
            ("", None),
        ] {
            std::fs::write(&path, now).unwrap();
            assert_eq!(replace_text(&path, "(a)\r\n", "(b)\r\n").is_ok(), then.is_some(), "{now:?}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), then.unwrap_or(now));
        }
        std::fs::remove_file(&path).unwrap();
        assert!(replace_text(&path, "", "(b)").is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
