//! The folder of a test: made when it is first asked for, removed with everything in it when the test has ended.
//!
//! Tests write nowhere else. Names are relative and are opened beneath the folder's handle: a tool can bring a link here
//! that leads out, and what it is granted is not granted to the test.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use crate::script::control::lock;
use crate::script::leftover;

/// Longest file that a test reads or writes, in bytes.
const MAX_FILE: usize = 8 << 20;
/// Most bytes that a test writes in all, as one call of a script.
const MAX_WRITTEN: usize = 64 << 20;
/// Most files and folders that a test makes, and most files that are listed.
const MAX_ENTRIES: usize = 10_000;

/// How often a folder is removed again that a test still writes to.
const SWEEPS: usize = 100;

/// The folders that are there now; `None` once they were removed for good. Held while one is made, so that none is missed.
static THERE: Mutex<Option<BTreeSet<PathBuf>>> = Mutex::new(Some(BTreeSet::new()));

/// Removes the folders of the tests that run: for a process that does not wait for their ends. No test gets another
/// folder.
pub fn remove_test_folders() {
    for folder in lock(&THERE).take().unwrap_or_default() {
        for _ in 0..SWEEPS {
            if std::fs::remove_dir_all(&folder).is_ok() || !folder.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A folder of its own, removed when dropped.
#[derive(Debug)]
pub(super) struct TempFolder {
    path: PathBuf,
    /// Bytes that the test wrote, files written over included.
    written: Cell<usize>,
    /// Files and folders that it made.
    made: Cell<usize>,
    /// Held while the folder is there: no other process takes it for one that was left behind.
    _lock: Option<File>,
}

impl TempFolder {
    /// A new folder among the system's temporary files, for this user alone.
    pub(super) fn new() -> Result<Self, String> {
        let base = std::env::temp_dir();
        // Seen as the system sees it: a grant is not to be a link.
        let base = std::fs::canonicalize(&base).unwrap_or(base);
        for _ in 0..16 {
            let path = leftover::test_folder_in(&base);
            let mut there = lock(&THERE);
            let there = there.as_mut().ok_or("the tests were ended")?;
            match make(&path).and_then(|()| leftover::hold_folder(&path)) {
                Ok(held) => {
                    there.insert(path.clone());
                    return Ok(Self { path, written: Cell::new(0), made: Cell::new(0), _lock: held });
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("{}: {error}", path.display())),
            }
        }
        Err(format!("{}: every name is taken", base.display()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `text` into the file `name`; makes the folders it needs.
    pub(super) fn write(&self, name: &str, text: &[u8]) -> Result<(), String> {
        if text.len() > MAX_FILE {
            return Err(format!("longer than {} MiB", MAX_FILE >> 20));
        }
        let written = self.written.get().saturating_add(text.len());
        if written > MAX_WRITTEN {
            return Err(format!("a test writes {} MiB in all at most", MAX_WRITTEN >> 20));
        }
        let name = plain(name)?;
        let folder = self.open()?;
        let new = name.ancestors().filter(|path| !path.as_os_str().is_empty());
        let new = new.take_while(|path| folder.symlink_metadata(path).is_err()).count();
        let made = self.made.get().saturating_add(new);
        if made > MAX_ENTRIES {
            return Err(format!("a test makes {MAX_ENTRIES} files and folders at most"));
        }
        if let Some(above) = name.parent().filter(|above| !above.as_os_str().is_empty()) {
            folder.create_dir_all(above).map_err(|error| error.to_string())?;
        }
        folder.write(name, text).map_err(|error| error.to_string())?;
        self.written.set(written);
        self.made.set(made);
        Ok(())
    }

    /// What the file `name` holds; `None`: there is none.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let name = plain(name)?;
        let folder = self.open()?;
        match folder.metadata(name) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.to_string()),
            Ok(about) if !about.is_file() => Err(String::from("not a regular file")),
            Ok(about) if about.len() > MAX_FILE as u64 => Err(format!("longer than {} MiB", MAX_FILE >> 20)),
            Ok(_) => folder.read(name).map(Some).map_err(|error| error.to_string()),
        }
    }

    fn open(&self) -> Result<Dir, String> {
        Dir::open_ambient_dir(&self.path, ambient_authority()).map_err(|error| error.to_string())
    }

    /// The files in it, at every depth, by name.
    pub(super) fn list(&self) -> Result<Vec<String>, String> {
        let mut found = Vec::new();
        let mut pending = vec![self.path.clone()];
        while let Some(folder) = pending.pop() {
            for entry in std::fs::read_dir(folder).map_err(|error| error.to_string())?.flatten() {
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    pending.push(path);
                } else if let Ok(name) = path.strip_prefix(&self.path) {
                    found.push(name.to_string_lossy().replace('\\', "/"));
                }
                if found.len() + pending.len() > MAX_ENTRIES {
                    return Err(format!("more than {MAX_ENTRIES} files"));
                }
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}

/// `name`, if it is one beneath a folder by its text.
fn plain(name: &str) -> Result<&Path, String> {
    let is_plain = Path::new(name)
        .components()
        .all(|component| matches!(component, Component::Normal(_) | Component::CurDir));
    if name.is_empty() || !is_plain {
        return Err(String::from("expected a name beneath the test's folder, as in \"notes/today.md\""));
    }
    Ok(Path::new(name))
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // What a tool still holds open, or was not allowed to be removed, stays behind.
        let _ = std::fs::remove_dir_all(&self.path);
        if let Some(there) = lock(&THERE).as_mut() {
            there.remove(&self.path);
        }
    }
}

#[cfg(unix)]
fn make(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;

    std::fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(not(unix))]
fn make(path: &Path) -> std::io::Result<()> {
    std::fs::create_dir(path)
}
