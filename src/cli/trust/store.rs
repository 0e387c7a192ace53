//! What the user trusted projects with, in one file of the state folder: `trust.json`.
//!
//! The file is written whole and put in its place in one step, under a lock, so that nobody reads a half and none of several
//! deftools loses what another wrote. What others may have written is not believed; what cannot be read as what it should be
//! is told, counts as nothing and is kept aside when something is remembered next.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::state::{doubt, make_folder, state_folder};
use crate::cli::output::say;
use crate::project::Grants;

/// Grants by the project's path.
pub(in crate::cli) type Projects = BTreeMap<String, Grants>;

/// What the file holds.
#[derive(Serialize, Deserialize)]
struct Content {
    version: u32,
    #[serde(default)]
    projects: Projects,
}

const VERSION: u32 = 1;
/// A larger file is none of ours.
const MAX_BYTES: u64 = 16 << 20;
/// Who holds the lock for longer is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why nothing is known, or nothing can be remembered.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum StoreError {
    #[error("nothing can be remembered: neither XDG_STATE_HOME nor HOME names a folder")]
    NoFolder,
    #[error("{} is not believed: it {why}", path.display())]
    NotBelieved { path: PathBuf, why: &'static str },
    #[error(
        "{} is damaged ({why}): no project counts as trusted; it is kept aside when something is trusted next",
        path.display()
    )]
    Damaged { path: PathBuf, why: String },
    #[error("{} was written by a newer deftool; it is left as it is", path.display())]
    Newer { path: PathBuf },
    #[error("cannot {what} {}: {source}", path.display())]
    Io { what: &'static str, path: PathBuf, source: std::io::Error },
}

/// The file's place.
pub(in crate::cli) struct Store {
    folder: Option<PathBuf>,
}

impl Store {
    /// The user's.
    pub(in crate::cli) fn of_user() -> Self {
        Self { folder: state_folder() }
    }

    /// What is remembered; nothing where there is no file yet.
    pub(in crate::cli) fn read(&self) -> Result<Projects, StoreError> {
        let folder = self.folder.as_deref().ok_or(StoreError::NoFolder)?;
        read(folder)
    }

    /// Changes what is remembered.
    pub(in crate::cli) fn change(&self, change: impl FnOnce(&mut Projects)) -> Result<(), StoreError> {
        let folder = self.folder.as_deref().ok_or(StoreError::NoFolder)?;
        make_folder(folder).map_err(|source| io("make", folder, source))?;
        believe(folder, &std::fs::metadata(folder).map_err(|source| io("look at", folder, source))?)?;
        let _lock = lock(folder)?;
        let mut projects = match read(folder) {
            Ok(projects) => projects,
            Err(StoreError::Damaged { path, .. }) => {
                let aside = free_name(folder);
                std::fs::rename(&path, &aside).map_err(|source| io("keep aside", &path, source))?;
                let (path, aside) = (path.display(), aside.display());
                say(&format!("note: {path} was damaged; what it held is kept in {aside}"));
                Projects::new()
            }
            Err(error) => return Err(error),
        };
        change(&mut projects);
        write(folder, &Content { version: VERSION, projects })
    }
}

fn io(what: &'static str, path: &Path, source: std::io::Error) -> StoreError {
    StoreError::Io { what, path: path.to_owned(), source }
}

fn believe(path: &Path, metadata: &std::fs::Metadata) -> Result<(), StoreError> {
    match doubt(metadata) {
        Some(why) => Err(StoreError::NotBelieved { path: path.to_owned(), why }),
        None => Ok(()),
    }
}

fn read(folder: &Path) -> Result<Projects, StoreError> {
    let path = folder.join("trust.json");
    let damaged = |why: String| StoreError::Damaged { path: path.clone(), why };
    let metadata = match std::fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Projects::new()),
        Err(error) => return Err(io("read", &path, error)),
    };
    // Who may write the folder may put any file of this user's into it.
    believe(folder, &std::fs::metadata(folder).map_err(|source| io("look at", folder, source))?)?;
    // Opening a pipe would wait for a writer.
    if !metadata.is_file() {
        return Err(damaged(String::from("it is no regular file")));
    }
    let file = File::open(&path).map_err(|source| io("read", &path, source))?;
    believe(&path, &file.metadata().map_err(|source| io("look at", &path, source))?)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|source| io("read", &path, source))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(damaged(format!("it is larger than {} MiB", MAX_BYTES >> 20)));
    }
    // A newer format need not be readable to be told.
    let version = serde_json::from_slice::<serde_json::Value>(&bytes).ok();
    let version = version.and_then(|content| content.get("version")?.as_u64());
    if version.is_some_and(|version| version > u64::from(VERSION)) {
        return Err(StoreError::Newer { path });
    }
    let content: Content = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    Ok(content.projects)
}

/// The caller holds the lock.
fn write(folder: &Path, content: &Content) -> Result<(), StoreError> {
    let (path, beside) = (folder.join("trust.json"), folder.join("trust.json.new"));
    let mut text = serde_json::to_vec_pretty(content).unwrap_or_default();
    text.push(b'\n');
    // Of a process that was killed.
    let _ = std::fs::remove_file(&beside);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&beside).and_then(|mut file| {
        file.write_all(&text)?;
        file.sync_all()
    });
    let written = written.and_then(|()| std::fs::rename(&beside, &path));
    written.map_err(|source| {
        let _ = std::fs::remove_file(&beside);
        io("write", &path, source)
    })
}

fn free_name(folder: &Path) -> PathBuf {
    let names = (1..1000).map(|number| folder.join(format!("trust.json.damaged-{number}")));
    names.into_iter().find(|path| !path.exists()).unwrap_or_else(|| folder.join("trust.json.damaged"))
}

/// The lock, until it is dropped. A process that ends gives it back, however it ends.
fn lock(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join("trust.lock");
    let started = Instant::now();
    loop {
        match try_lock(&path) {
            Ok(file) => return Ok(file),
            Err(error) if is_held(&error) && started.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(source) => return Err(io("lock", &path, source)),
        }
    }
}

#[cfg(unix)]
fn try_lock(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;

    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

#[cfg(unix)]
fn is_held(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}

/// A file that is shared with nobody cannot be opened twice.
#[cfg(windows)]
fn try_lock(path: &Path) -> std::io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;

    OpenOptions::new().create(true).truncate(false).write(true).share_mode(0).open(path)
}

#[cfg(windows)]
fn is_held(error: &std::io::Error) -> bool {
    // ERROR_SHARING_VIOLATION
    error.raw_os_error() == Some(32)
}
