//! A test of file change notifications, for `deftool doctor`.

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use notify::{RecursiveMode, Watcher};

/// The reason why no events arrive. The regular scan still finds every change, only later.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// A system limit is exceeded.
    #[error("the system limit of watched files is exceeded")]
    Limit,
    /// Watching failed for another reason.
    #[error("{0}")]
    Failed(String),
    /// A file was written, and no event arrived.
    #[error("no event arrived within {} s after a file was written", .0.as_secs())]
    Silent(Duration),
}

impl From<notify::Error> for WatchError {
    fn from(error: notify::Error) -> Self {
        // EMFILE: too many inotify instances.
        let is_limit = match &error.kind {
            notify::ErrorKind::MaxFilesWatch => true,
            notify::ErrorKind::Io(error) => matches!(error.raw_os_error(), Some(24)) && cfg!(unix),
            _ => false,
        };
        if is_limit { Self::Limit } else { Self::Failed(error.to_string()) }
    }
}

/// Starts a watcher for `folders`, as for a project, and stops it. Writes nothing.
///
/// # Errors
/// If a folder cannot be watched.
pub fn try_watching<'p>(folders: impl IntoIterator<Item = &'p Path>) -> Result<(), WatchError> {
    let mut watcher = notify::recommended_watcher(|_: notify::Result<notify::Event>| {})?;
    for folder in folders {
        watcher.watch(folder, RecursiveMode::Recursive)?;
    }
    Ok(())
}

/// Writes a file in `folder`, which must be empty, and waits for the event.
///
/// # Errors
/// If no event arrives within `limit`.
pub fn try_event(folder: &Path, limit: Duration) -> Result<(), WatchError> {
    let (sender, events) = channel();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.is_ok() {
            let _ = sender.send(());
        }
    })?;
    watcher.watch(folder, RecursiveMode::Recursive)?;
    std::fs::write(folder.join("written"), "1").map_err(|error| WatchError::Failed(error.to_string()))?;
    events.recv_timeout(limit).map_err(|_| WatchError::Silent(limit))
}
