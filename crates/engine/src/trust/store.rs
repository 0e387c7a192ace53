//! The store of trusted projects: `trust.json` in the state folder.
//!
//! The file is replaced atomically under a lock, so that concurrent deftool processes neither read partial content nor
//! lose each other's changes. A file that other users can write is ignored. A damaged file is reported, counts as empty
//! and is renamed at the next change.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use deftool_process::files::{
    create_new_private, create_private_folder, lock_private, open_or_create_private, untrusted_reason,
};
use deftool_project::PermissionSet;
use serde::{Deserialize, Serialize};

use crate::Notices;
use crate::folders::state_folder;

/// Trusted permissions by project path.
pub type Projects = BTreeMap<String, PermissionSet>;

/// The content of the file.
#[derive(Serialize, Deserialize)]
struct Content {
    version: u32,
    #[serde(default)]
    projects: Projects,
}

const VERSION: u32 = 1;
/// Maximum size of the file in bytes.
const MAX_BYTES: u64 = 16 << 20;
/// Maximum wait for the lock.
const LOCK_LIMIT: Duration = Duration::from_secs(5);

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No environment variable names the state folder.
    #[error("no state folder: neither XDG_STATE_HOME nor HOME is an absolute path")]
    NoFolder,
    /// Other users can write the file.
    #[error("{} is ignored: it {why}", path.display())]
    Untrusted {
        /// The file or its folder.
        path: PathBuf,
        /// The reason, a clause.
        why: &'static str,
    },
    /// The file is not readable as JSON of this format.
    #[error(
        "{} is damaged ({why}): no project is trusted; the file is renamed at the next change",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The file has a later format.
    #[error("{} was written by a newer version of deftool and is left unchanged", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
    },
    /// The file or its folder cannot be used.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried, a verb.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
}

/// The store of trusted projects.
#[derive(Debug)]
pub struct Store {
    folder: Option<PathBuf>,
}

impl Store {
    /// Returns the user's store.
    pub fn of_user() -> Self {
        Self { folder: state_folder() }
    }

    /// Returns the stored permissions. Empty if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read or must not be used.
    pub fn read(&self) -> Result<Projects, StoreError> {
        let folder = self.folder.as_deref().ok_or(StoreError::NoFolder)?;
        read(folder)
    }

    /// Changes the stored permissions. Reports a damaged file.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn change(&self, notices: &Notices, change: impl FnOnce(&mut Projects)) -> Result<(), StoreError> {
        let folder = self.folder.as_deref().ok_or(StoreError::NoFolder)?;
        create_private_folder(folder).map_err(|source| io("create", folder, source))?;
        check_owner(folder, &std::fs::metadata(folder).map_err(|source| io("access", folder, source))?)?;
        let _lock = lock(folder)?;
        let mut projects = match read(folder) {
            Ok(projects) => projects,
            Err(StoreError::Damaged { path, .. }) => {
                let aside = free_name(folder);
                std::fs::rename(&path, &aside).map_err(|source| io("rename", &path, source))?;
                let (path, aside) = (path.display(), aside.display());
                notices.send(&format!("note: {path} was damaged; the old content is in {aside}"));
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

fn check_owner(path: &Path, metadata: &std::fs::Metadata) -> Result<(), StoreError> {
    match untrusted_reason(metadata) {
        Some(why) => Err(StoreError::Untrusted { path: path.to_owned(), why }),
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
    // A user with write access to the folder can move other files into it.
    check_owner(folder, &std::fs::metadata(folder).map_err(|source| io("access", folder, source))?)?;
    // Opening a pipe would block.
    if !metadata.is_file() {
        return Err(damaged(String::from("not a regular file")));
    }
    let file = File::open(&path).map_err(|source| io("read", &path, source))?;
    check_owner(&path, &file.metadata().map_err(|source| io("access", &path, source))?)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|source| io("read", &path, source))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(damaged(format!("larger than {} MiB", MAX_BYTES >> 20)));
    }
    // Read only the version first: a newer format may not match the type.
    let version = serde_json::from_slice::<serde_json::Value>(&bytes).ok();
    let version = version.and_then(|content| content.get("version")?.as_u64());
    if version.is_some_and(|version| version > u64::from(VERSION)) {
        return Err(StoreError::Newer { path });
    }
    let content: Content = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    Ok(content.projects)
}

/// Writes the file. The caller must hold the lock.
fn write(folder: &Path, content: &Content) -> Result<(), StoreError> {
    let (path, temporary) = (folder.join("trust.json"), folder.join("trust.json.new"));
    let mut text = serde_json::to_vec_pretty(content).unwrap_or_default();
    text.push(b'\n');
    // Remove a file that was left by a killed process.
    let _ = std::fs::remove_file(&temporary);
    let created = create_new_private(&temporary, File::options().write(true));
    let written = created.and_then(|mut file| {
        file.write_all(&text)?;
        file.sync_all()
    });
    let written = written.and_then(|()| std::fs::rename(&temporary, &path));
    written.map_err(|source| {
        let _ = std::fs::remove_file(&temporary);
        io("write", &path, source)
    })
}

fn free_name(folder: &Path) -> PathBuf {
    let names = (1..1000).map(|number| folder.join(format!("trust.json.damaged-{number}")));
    names.into_iter().find(|path| !path.exists()).unwrap_or_else(|| folder.join("trust.json.damaged"))
}

/// Acquires the lock, which is released on drop or when the process ends.
fn lock(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join("trust.lock");
    let locked = open_or_create_private(&path, File::options().write(true)).and_then(|file| {
        let is_locked = lock_private(&file, LOCK_LIMIT)?;
        if is_locked { Ok(file) } else { Err(ErrorKind::WouldBlock.into()) }
    });
    locked.map_err(|source| io("lock", &path, source))
}
