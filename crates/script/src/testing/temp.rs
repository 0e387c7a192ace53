//! The temporary folder of a test. It is created on first use, and removed with its contents when the test ends.
//!
//! Tests cannot write anywhere else. Names are relative and are opened through the folder's handle, so links that lead
//! out of the folder are not followed: a tool may move such a link there, and the test does not have the tool's
//! permissions.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use deftool_process::files::create_test_folder;
use deftool_process::lock;

/// Maximum size of a file that a test reads or writes, in bytes.
const MAX_FILE: usize = 8 << 20;
/// Maximum number of bytes that a test writes in total, as for a call of a script.
const MAX_WRITTEN: usize = 64 << 20;
/// Maximum number of files and folders that a test creates, and of files that are listed.
const MAX_ENTRIES: usize = 10_000;

/// Maximum number of attempts to remove a folder that a test still writes to.
const MAX_REMOVE_ATTEMPTS: usize = 100;

/// The existing folders. `None` after [`remove_test_folders`]. Locked while a folder is created, so that no folder is
/// missed.
static LIVE_FOLDERS: Mutex<Option<BTreeSet<PathBuf>>> = Mutex::new(Some(BTreeSet::new()));

/// Removes the folders of running tests, for a process that exits without waiting for them. After that, no test can
/// create a folder.
pub fn remove_test_folders() {
    for folder in lock(&LIVE_FOLDERS).take().unwrap_or_default() {
        for _ in 0..MAX_REMOVE_ATTEMPTS {
            if std::fs::remove_dir_all(&folder).is_ok() || !folder.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The folder of a test. Removed when dropped.
#[derive(Debug)]
pub(super) struct TempFolder {
    path: PathBuf,
    /// Number of bytes that the test wrote, including overwritten files.
    written: Cell<usize>,
    /// Number of files and folders that it created.
    created: Cell<usize>,
    /// Locked while the folder exists, so that other processes do not remove it as left behind.
    _lock: Option<File>,
}

impl TempFolder {
    /// Creates a folder in the system's temporary directory, accessible only to this user.
    pub(super) fn new() -> Result<Self, String> {
        let base = std::env::temp_dir();
        // Without links: the path of a grant must not be a link.
        let base = std::fs::canonicalize(&base).unwrap_or(base);
        let mut folders = lock(&LIVE_FOLDERS);
        let folders = folders.as_mut().ok_or("the tests were stopped")?;
        let created = create_test_folder(&base);
        let (path, lock) = created.map_err(|error| format!("{}: {error}", base.display()))?;
        folders.insert(path.clone());
        Ok(Self { path, written: Cell::new(0), created: Cell::new(0), _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `text` to the file `name`. Creates missing folders.
    pub(super) fn write(&self, name: &str, text: &[u8]) -> Result<(), String> {
        if text.len() > MAX_FILE {
            return Err(format!("larger than {} MiB", MAX_FILE >> 20));
        }
        let written = self.written.get().saturating_add(text.len());
        if written > MAX_WRITTEN {
            return Err(format!("a test can write at most {} MiB in total", MAX_WRITTEN >> 20));
        }
        let name = relative_name(name)?;
        let folder = self.open()?;
        let new = name.ancestors().filter(|path| !path.as_os_str().is_empty());
        let new = new.take_while(|path| folder.symlink_metadata(path).is_err()).count();
        let created = self.created.get().saturating_add(new);
        if created > MAX_ENTRIES {
            return Err(format!("a test can create at most {MAX_ENTRIES} files and folders"));
        }
        if let Some(above) = name.parent().filter(|above| !above.as_os_str().is_empty()) {
            folder.create_dir_all(above).map_err(|error| error.to_string())?;
        }
        folder.write(name, text).map_err(|error| error.to_string())?;
        self.written.set(written);
        self.created.set(created);
        Ok(())
    }

    /// Returns the contents of the file `name`, or `None` if it does not exist.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let name = relative_name(name)?;
        let folder = self.open()?;
        match folder.metadata(name) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.to_string()),
            Ok(about) if !about.is_file() => Err(String::from("not a regular file")),
            Ok(about) if about.len() > MAX_FILE as u64 => Err(format!("larger than {} MiB", MAX_FILE >> 20)),
            Ok(_) => folder.read(name).map(Some).map_err(|error| error.to_string()),
        }
    }

    fn open(&self) -> Result<Dir, String> {
        Dir::open_ambient_dir(&self.path, ambient_authority()).map_err(|error| error.to_string())
    }

    /// Returns the files in the folder and its subfolders, sorted by name.
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

/// Returns `name` as a path if it is relative and contains no `..`.
fn relative_name(name: &str) -> Result<&Path, String> {
    let is_plain = Path::new(name)
        .components()
        .all(|component| matches!(component, Component::Normal(_) | Component::CurDir));
    if name.is_empty() || !is_plain {
        return Err(String::from("expected a relative path in the test's folder, as in \"notes/today.md\""));
    }
    Ok(Path::new(name))
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // Files that a tool still has open, or that cannot be removed, are left behind.
        let _ = std::fs::remove_dir_all(&self.path);
        if let Some(folders) = lock(&LIVE_FOLDERS).as_mut() {
            folders.remove(&self.path);
        }
    }
}
