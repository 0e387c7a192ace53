//! Atomic replacement of files.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Result, Write};
use std::path::Path;

use super::leftover::create_beside;

/// The UTF-8 byte order mark, which some editors write.
pub const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Who may read a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// The umask decides.
    Default,
    /// Only the user: it contains conversations.
    User,
}

/// Replaces the text `before` of the file at `path` with `after`, unless another process has done it. A byte order mark
/// is kept.
///
/// # Errors
/// If the file contains a different text, is not writable, or its folder is not writable. The file is then unchanged.
pub fn replace_text(path: &Path, before: &str, after: &str) -> Result<()> {
    let bytes = std::fs::read(path)?;
    let (mark, text) = match bytes.strip_prefix(BYTE_ORDER_MARK) {
        Some(text) => (BYTE_ORDER_MARK, text),
        None => (&[][..], bytes.as_slice()),
    };
    if text == after.as_bytes() {
        return Ok(());
    }
    if text != before.as_bytes() {
        return Err(Error::other("the file was changed by another program; try again"));
    }
    replace_file(path, &[mark, after.as_bytes()].concat())
}

/// Replaces the content of the file at `path` with `bytes`. Writes a temporary file in the same folder and renames it,
/// so that no reader sees a partial file. Symbolic links are followed. The permissions and, if the user may set it, the
/// owner are kept. Other hard links keep the old content.
///
/// # Errors
/// If the file does not exist, is not writable, or its folder is not writable. The file is then unchanged.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let path = std::fs::canonicalize(path)?;
    let metadata = std::fs::metadata(&path)?;
    check_writable(&path, &metadata)?;
    // Open until after the rename: a file without a lock is removed as left behind.
    let (file, temporary) = create_beside(&path)?;
    let written = fill(&file, bytes, Some(&metadata), Readers::Default)
        .and_then(|()| std::fs::rename(&temporary, &path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Checks that the user may write an existing file: a rename requires only a writable folder.
pub(super) fn check_writable(path: &Path, metadata: &Metadata) -> Result<()> {
    if metadata.permissions().readonly() {
        return Err(Error::new(ErrorKind::PermissionDenied, "the file is read-only"));
    }
    OpenOptions::new().write(true).open(path).map(drop)
}

/// Writes a temporary file that is to replace the file `like`.
pub(super) fn fill(mut file: &File, bytes: &[u8], like: Option<&Metadata>, readers: Readers) -> Result<()> {
    if let Some(like) = like {
        keep_owner(file, like);
        file.set_permissions(like.permissions())?;
    }
    #[cfg(unix)]
    if readers == Readers::User {
        // This fails on file systems without permissions. There is no alternative.
        let _ = file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600));
    }
    file.write_all(bytes)?;
    file.sync_all()
}

/// Keeps the owner when root edits another user's file. Uses the open file, because its path may refer to another file
/// by now.
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
    fn a_file_with_different_content_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.eld");
        for (now, then) in [
            ("(a)\r\n", Some("(b)\r\n")),
            ("\u{feff}(a)\r\n", Some("\u{feff}(b)\r\n")),
            ("(b)\r\n", Some("(b)\r\n")),
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

    /// The path may refer to another file after the file was opened.
    #[cfg(unix)]
    #[test]
    fn the_owner_of_the_open_file_is_set() {
        use std::os::unix::fs::{MetadataExt, chown, symlink};

        let folder = tempfile::tempdir().unwrap();
        let [theirs, ours, name] = ["theirs", "ours", "name"].map(|name| folder.path().join(name));
        std::fs::write(&theirs, "").unwrap();
        std::fs::write(&ours, "").unwrap();
        if chown(&theirs, Some(4321), Some(4321)).is_err() {
            return; // Only root can change the owner.
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
