//! Files that only their user may change: journals, locks, sessions, recordings and pages.
//!
//! They contain conversations, and they are read again later. So opening one never waits, opens only regular files, and
//! rejects a file that another user could have written. A new file can be read only by its user.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Read, Result, Seek};
use std::path::Path;
use std::time::Duration;

use super::output::is_stream;

/// Pause between two attempts to lock a file.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Opens an existing file.
///
/// # Errors
/// If the file does not exist, is not a regular file, or may have been written by another user.
pub fn open_private(path: &Path, options: &OpenOptions) -> Result<File> {
    open_checked(path, options, check)
}

/// Opens a file that is only read: another user may have written it, but it must be a regular file.
///
/// # Errors
/// If the file does not exist, cannot be read or is not a regular file.
pub fn open_regular(path: &Path) -> Result<File> {
    open_checked(path, File::options().read(true), check_regular)
}

/// Checks a file and its folder without opening the file.
///
/// # Errors
/// Like [`open_private`], or if another user could have replaced the file.
pub fn check_private(path: &Path) -> Result<()> {
    check(&std::fs::metadata(path)?)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match untrusted_parent_reason(&std::fs::metadata(folder)?) {
        Some(why) => Err(Error::other(format!("its folder {why}"))),
        None => Ok(()),
    }
}

/// Opens a file, or creates it. A link to a file that does not exist is rejected.
///
/// # Errors
/// Like [`open_private`], or if the file cannot be created.
pub fn open_or_create_private(path: &Path, options: &OpenOptions) -> Result<File> {
    match create_new_private(path, options) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            open_private(path, options).map_err(|error| match error.kind() {
                ErrorKind::NotFound => Error::other("a link to a file that does not exist"),
                _ => error,
            })
        }
        created => created,
    }
}

/// Creates a file.
///
/// # Errors
/// If the file exists or cannot be created.
pub fn create_new_private(path: &Path, options: &OpenOptions) -> Result<File> {
    let mut options = options.clone();
    options.create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Creates or truncates a file, such as a recording. An existing file must be empty or begin with `beginning`. `what` is
/// the kind of file, for errors.
///
/// # Errors
/// If the file cannot be written, has a different beginning, is not a regular file, or may have been written by another
/// user. It is then unchanged.
pub fn create_private(path: &Path, what: &str, beginning: &str) -> Result<File> {
    let mut file = open_or_create_private(path, File::options().read(true).write(true))?;
    if file.metadata()?.len() > 0 {
        let mut head = Vec::new();
        (&mut file).take(beginning.len() as u64).read_to_end(&mut head)?;
        if head != beginning.as_bytes() {
            let why = format!("the existing file is not a {what}; choose another name");
            return Err(Error::new(ErrorKind::AlreadyExists, why));
        }
        file.set_len(0)?;
        file.rewind()?;
    }
    // An existing file may be readable by other users.
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        // This fails on file systems without permissions. There is no alternative.
        let _ = file.set_permissions(mode);
    }
    Ok(file)
}

/// Like [`create_private`], for an output that the user names: it may also be a [stream](is_stream), such as `/dev/stdout`.
///
/// # Errors
/// Like [`create_private`].
pub fn create_output(path: &Path, what: &str, beginning: &str) -> Result<File> {
    if is_stream(path) {
        return File::options().write(true).open(path);
    }
    create_private(path, what, beginning)
}

/// Creates a folder and its parents if they do not exist. Only their user can access new folders.
///
/// # Errors
/// If a folder cannot be created.
pub fn create_private_folder(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// Locks a file for this process. The children of a killed process may hold its lock until they end, so a held lock is
/// tried again until `limit`. Returns whether the file is locked.
///
/// # Errors
/// If the file system does not support locks.
pub fn lock_private(file: &File, limit: Duration) -> Result<bool> {
    lock_with(file, limit, || std::thread::sleep(LOCK_PAUSE))
}

fn lock_with(file: &File, limit: Duration, mut pause: impl FnMut()) -> Result<bool> {
    for _ in 0..limit.as_millis() / LOCK_PAUSE.as_millis() {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => pause(),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(false)
}

/// Returns the reason why a file or folder cannot be trusted: other users may have written it. The administrator may
/// write any file.
#[cfg(unix)]
pub fn untrusted_reason(metadata: &Metadata) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt;

    if ![rustix::process::geteuid().as_raw(), 0].contains(&metadata.uid()) {
        return Some("belongs to another user (to fix it, run `chown`)");
    }
    (metadata.mode() & 0o022 != 0).then_some("is writable by other users (to fix it, run `chmod go-w`)")
}

/// On Windows, the folders of a user are protected by default.
#[cfg(not(unix))]
pub fn untrusted_reason(_: &Metadata) -> Option<&'static str> {
    None
}

/// Like [`untrusted_reason`], for a folder above a trusted one. In a sticky folder, such as `/tmp`, other users cannot
/// replace the files of a user.
pub fn untrusted_parent_reason(metadata: &Metadata) -> Option<&'static str> {
    #[cfg(unix)]
    let is_sticky = std::os::unix::fs::MetadataExt::mode(metadata) & 0o1000 != 0;
    #[cfg(not(unix))]
    let is_sticky = false;
    untrusted_reason(metadata).filter(|_| !is_sticky)
}

/// From now on, only their user can access the files and folders that this process creates.
pub fn create_only_private_files() {
    #[cfg(unix)]
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
}

fn open_checked(path: &Path, options: &OpenOptions, check: fn(&Metadata) -> Result<()>) -> Result<File> {
    // Before opening, because opening a pipe or a device may have side effects.
    check(&std::fs::metadata(path)?)?;
    let file = without_waiting(options).open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

fn check_regular(metadata: &Metadata) -> Result<()> {
    if metadata.is_file() {
        Ok(())
    } else if metadata.is_dir() {
        Err(Error::other("not a regular file"))
    } else {
        Err(Error::other("not a regular file (to read a pipe or a device, copy it to a file)"))
    }
}

fn check(metadata: &Metadata) -> Result<()> {
    check_regular(metadata)?;
    match untrusted_reason(metadata) {
        Some(why) => Err(Error::other(format!("the file {why}"))),
        None => Ok(()),
    }
}

/// The path may be replaced by a pipe after its check.
#[cfg(unix)]
fn without_waiting(options: &OpenOptions) -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;

    use rustix::fs::OFlags;

    let mut options = options.clone();
    options.custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed());
    options
}

#[cfg(not(unix))]
fn without_waiting(options: &OpenOptions) -> OpenOptions {
    options.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let open = || open_or_create_private(&path, File::options().write(true)).unwrap();
        let (ours, mut theirs) = (open(), Some(open()));
        theirs.as_ref().unwrap().lock().unwrap();
        let (limit, mut pauses) = (10 * LOCK_PAUSE, 0);
        assert!(!lock_with(&ours, limit, || pauses += 1).unwrap());
        assert_eq!(pauses, 10);
        assert!(lock_with(&ours, limit, || drop(theirs.take())).unwrap());
    }

    #[cfg(unix)]
    #[test]
    fn only_regular_files_of_the_user_are_opened() {
        use std::os::unix::fs::{PermissionsExt, chown, symlink};

        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let access = || File::options().read(true).write(true).clone();
        let error = |name: &str| {
            let opened = open_or_create_private(&path(name), &access());
            opened.err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(error("new"), "");
        let mode = std::fs::metadata(path("new")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        symlink(path("new"), path("link")).unwrap();
        assert_eq!(error("link"), "");
        symlink(path("missing"), path("dangling")).unwrap();
        assert_eq!(error("dangling"), "a link to a file that does not exist");
        assert!(!path("missing").exists());
        assert!(std::process::Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
        symlink("/dev/zero", path("device")).unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        for name in ["pipe", "device", "folder"] {
            assert!(error(name).starts_with("not a regular file"), "{name}");
        }
        for mode in [0o620, 0o602] {
            std::fs::write(path("shared"), "").unwrap();
            std::fs::set_permissions(path("shared"), PermissionsExt::from_mode(mode)).unwrap();
            let expected = "the file is writable by other users (to fix it, run `chmod go-w`)";
            assert_eq!(error("shared"), expected);
        }
        std::fs::write(path("theirs"), "").unwrap();
        // Only root can change the owner.
        if chown(path("theirs"), Some(4321), None).is_ok() {
            assert_eq!(error("theirs"), "the file belongs to another user (to fix it, run `chown`)");
        }
    }
}
