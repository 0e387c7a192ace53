//! Files written whole or not at all.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Result, Write};
use std::path::Path;

use super::read::BYTE_ORDER_MARK;
use crate::script::create_beside;

/// Puts the text `after` in the place of `before`, which the file at `path` must still hold; a byte order mark before it
/// stays.
///
/// # Errors
/// When it holds something else by now, may not be written, or its folder takes no new file; it is then as it was.
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
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let path = std::fs::canonicalize(path)?;
    let metadata = std::fs::metadata(&path)?;
    // The folder alone decides about a rename; the file's own word counts, too.
    if metadata.permissions().readonly() {
        return Err(Error::new(ErrorKind::PermissionDenied, "it is read-only"));
    }
    OpenOptions::new().write(true).open(&path)?;
    let (file, beside) = create_beside(&path)?;
    let written = fill(file, bytes, &metadata).and_then(|()| std::fs::rename(&beside, &path));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

fn fill(mut file: File, bytes: &[u8], like: &Metadata) -> Result<()> {
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

    /// The name of a file says nothing about which file it is a moment later.
    #[cfg(unix)]
    #[test]
    fn the_owner_of_the_open_file_is_set_whatever_its_name_points_to() {
        use std::os::unix::fs::{MetadataExt, chown, symlink};

        let folder = tempfile::tempdir().unwrap();
        let [theirs, ours, name] = ["theirs", "ours", "name"].map(|name| folder.path().join(name));
        std::fs::write(&theirs, "").unwrap();
        std::fs::write(&ours, "").unwrap();
        if chown(&theirs, Some(4321), Some(4321)).is_err() {
            return; // Only root gives files away.
        }
        let like = std::fs::metadata(&theirs).unwrap();
        let file = File::create_new(&name).unwrap();
        std::fs::remove_file(&name).unwrap();
        symlink(&ours, &name).unwrap();
        keep_owner(&file, &like);
        assert_eq!(file.metadata().unwrap().uid(), 4321);
        assert_ne!(std::fs::metadata(&ours).unwrap().uid(), 4321);
        std::fs::remove_file(&name).unwrap();
        replace_file(&theirs, b"new").unwrap();
        assert_eq!(std::fs::metadata(&theirs).unwrap().uid(), 4321);
    }
}
