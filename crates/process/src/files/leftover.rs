//! Removes temporary files and test folders that a killed process left behind.
//!
//! The process that creates such a file or folder holds a lock on it (`flock`) until the file or folder is removed or
//! renamed. The system releases the lock when the process ends, for whatever reason. So an entry that matches our names
//! and can be locked has no owner. Process IDs, which are reused, and times are not compared. Only regular files and
//! folders of this user are removed, and links are not followed. On a file system without locks, nothing is removed.

use std::fs::{DirBuilder, File, Metadata};
use std::io::{ErrorKind, Result};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use crate::lock;

/// Name pattern of temporary files: `.deftool-0123456789abcdef.tmp`.
const PREFIX: &str = ".deftool-";
const SUFFIX: &str = ".tmp";
/// Name pattern of test folders: `deftool-test-PID-0123abcd`.
const TEST_PREFIX: &str = "deftool-test-";

/// Maximum number of entries to examine in a folder.
const MAX_ENTRIES: usize = 100_000;
/// Maximum number of folders that a process examines.
const MAX_FOLDERS: usize = 1_000;

/// The folders that were examined, as device and inode.
static SEEN: std::sync::Mutex<Vec<(u64, u64)>> = std::sync::Mutex::new(Vec::new());

/// Creates a temporary file in `dir`, which the caller renames or removes. Removes leftover files there first.
///
/// # Errors
/// When no file can be created in the folder.
pub fn create_temporary(dir: &Dir) -> Result<(File, String)> {
    remove_leftover_files(dir);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    loop {
        let name = format!("{PREFIX}{:016x}{SUFFIX}", fastrand::u64(..));
        let file = match dir.open_with(&name, &options) {
            Ok(file) => file.into_std(),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        // Before it was locked, another process may have treated it as left behind.
        if !is_held(&file) && has_name(&file.metadata()?) {
            return Ok((file, name));
        }
    }
}

/// Creates a temporary file in the folder of the file `path` and returns its path.
///
/// # Errors
/// When no file can be created in the folder.
pub fn create_beside(path: &Path) -> Result<(File, PathBuf)> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (file, name) = create_temporary(&Dir::open_ambient_dir(folder, ambient_authority())?)?;
    Ok((file, path.with_file_name(name)))
}

/// Returns whether `name` is the name of one of our temporary files.
pub fn is_temporary(name: &str) -> bool {
    let number = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    number.is_some_and(|number| number.len() == 16 && is_hex(number))
}

fn is_test_folder(name: &str) -> bool {
    let parts = name.strip_prefix(TEST_PREFIX).and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(process, number)| {
        process.parse::<u32>().is_ok() && number.len() == 8 && is_hex(number)
    })
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Creates a test folder in `base` that only this user can access. It must be removed before its lock is dropped.
///
/// # Errors
/// When no folder can be created in `base`.
pub fn create_test_folder(base: &Path) -> Result<(PathBuf, Option<File>)> {
    loop {
        let path = test_folder_in(base);
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(&path).and_then(|()| lock_folder(&path)) {
            Ok(lock) => return Ok((path, lock)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the path of a new test folder in `base`.
fn test_folder_in(base: &Path) -> PathBuf {
    base.join(format!("{TEST_PREFIX}{}-{:08x}", std::process::id(), fastrand::u32(..)))
}

/// Locks the folder that was just created at `path`.
///
/// # Errors
/// When another process treated the folder as left behind: it is removed, or soon will be.
#[cfg(unix)]
fn lock_folder(path: &Path) -> Result<Option<File>> {
    let folder = match open_folder(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(ErrorKind::AlreadyExists.into()),
        folder => folder?,
    };
    if is_held(&folder) || !is_at(&folder.metadata()?, path) {
        return Err(ErrorKind::AlreadyExists.into());
    }
    Ok(Some(folder))
}

#[cfg(not(unix))]
fn lock_folder(_: &Path) -> Result<Option<File>> {
    Ok(None)
}

/// Removes the test folders that killed processes left in the system's temporary directory. On systems other than Unix,
/// folders have no locks and nothing is removed.
#[cfg(unix)]
pub fn remove_leftover_test_folders() {
    let entries = std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_str().is_some_and(is_test_folder)) {
        let path = entry.path();
        let Ok(folder) = open_folder(&path) else { continue };
        let Ok(about) = folder.metadata() else { continue };
        let is_private = std::os::unix::fs::MetadataExt::mode(&about) & 0o777 == 0o700;
        if is_private && is_own(&about) && acquire_lock(&folder) && is_at(&about, &path) {
            // Removes links in it, does not follow them.
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

#[cfg(not(unix))]
pub fn remove_leftover_test_folders() {}

/// Removes the temporary files that killed processes left in `dir`, once per process and folder.
#[cfg(unix)]
fn remove_leftover_files(dir: &Dir) {
    use cap_std::fs::{MetadataExt as _, OpenOptionsExt as _};

    let Ok(about) = dir.dir_metadata() else { return };
    let id = (about.dev(), about.ino());
    {
        let mut seen = lock(&SEEN);
        if seen.len() >= MAX_FOLDERS || seen.contains(&id) {
            return;
        }
        seen.push(id);
    }
    let Ok(entries) = dir.entries() else { return };
    for entry in entries.flatten().take(MAX_ENTRIES) {
        let name = entry.file_name();
        let is_one =
            name.to_str().is_some_and(is_temporary) && entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_one {
            continue;
        }
        let mut options = OpenOptions::new();
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.read(true).custom_flags(flags.bits().cast_signed());
        let Ok(file) = dir.open_with(&name, &options) else { continue };
        let file = file.into_std();
        let Ok(about) = file.metadata() else { continue };
        let is_there = dir.symlink_metadata(&name).is_ok_and(|there| {
            (there.dev(), there.ino())
                == (std::os::unix::fs::MetadataExt::dev(&about), std::os::unix::fs::MetadataExt::ino(&about))
        });
        if about.is_file() && is_own(&about) && acquire_lock(&file) && is_there {
            let _ = dir.remove_file(&name);
        }
    }
}

#[cfg(not(unix))]
fn remove_leftover_files(_: &Dir) {}

#[cfg(unix)]
fn open_folder(path: &Path) -> Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;

    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NOFOLLOW;
    std::fs::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// Tries to lock `file` and returns whether another process holds the lock. Returns `false` if locks are not supported.
#[cfg(unix)]
fn is_held(file: &File) -> bool {
    try_lock(file) == Err(rustix::io::Errno::WOULDBLOCK)
}

#[cfg(not(unix))]
fn is_held(_: &File) -> bool {
    false
}

/// Tries to lock `file` and returns whether this succeeded. Returns `false` if locks are not supported.
#[cfg(unix)]
fn acquire_lock(file: &File) -> bool {
    try_lock(file).is_ok()
}

#[cfg(unix)]
fn try_lock(file: &File) -> rustix::io::Result<()> {
    rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive)
}

#[cfg(unix)]
fn has_name(about: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(about) > 0
}

#[cfg(not(unix))]
fn has_name(_: &Metadata) -> bool {
    true
}

#[cfg(unix)]
fn is_own(about: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(about) == rustix::process::geteuid().as_raw()
}

/// Returns whether `path` still names the open file with the metadata `about`.
#[cfg(unix)]
fn is_at(about: &Metadata, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    std::fs::symlink_metadata(path)
        .is_ok_and(|there| (there.dev(), there.ino()) == (about.dev(), about.ino()))
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::symlink;

    use super::*;

    fn open(path: &Path) -> Dir {
        Dir::open_ambient_dir(path, ambient_authority()).unwrap()
    }

    #[test]
    fn only_unlocked_temporary_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let left = ".deftool-0123456789abcdef.tmp";
        let kept = [
            ".deftool-0123456789abcdeg.tmp",
            ".deftool-0123456789abcde.tmp",
            ".deftool-0123456789ABCDEF.tmp",
            ".deftool-.tmp",
            "deftool-0123456789abcdef.tmp",
            ".other-0123456789abcdef.tmp",
        ];
        for name in kept.iter().chain([&left]) {
            std::fs::write(path(name), "half").unwrap();
        }
        let target = path("target");
        std::fs::write(&target, "kept").unwrap();
        symlink(&target, path(".deftool-1123456789abcdef.tmp")).unwrap();
        std::fs::create_dir(path(".deftool-2123456789abcdef.tmp")).unwrap();
        let held = path(".deftool-3123456789abcdef.tmp");
        let holder = File::create(&held).unwrap();
        assert!(acquire_lock(&holder));
        let (_locked, name) = create_temporary(&open(folder.path())).unwrap();
        assert!(!path(left).exists() && is_temporary(&name));
        for name in kept {
            assert!(path(name).exists(), "{name}");
        }
        assert!(path(".deftool-1123456789abcdef.tmp").is_symlink() && target.exists() && held.exists());
        assert!(path(".deftool-2123456789abcdef.tmp").is_dir());
        // A file that is being written is locked.
        assert!(is_held(&File::open(path(&name)).unwrap()));
    }

    #[test]
    fn names_of_test_folders_are_recognized() {
        assert!(is_test_folder(test_folder_in(Path::new("")).to_str().unwrap()));
        for name in
            ["deftool-test-1", "deftool-test-x-01234567", "deftool-test-1-0123456", "deftool-test-1-0123456g"]
        {
            assert!(!is_test_folder(name), "{name}");
        }
    }
}
