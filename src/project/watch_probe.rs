//! Whether the operating system tells of changes here, tried for a person.

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use notify::{RecursiveMode, Watcher};

/// Why no events come; the sweep finds every change all the same, a little later.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WatchError {
    /// A limit of the system is exhausted.
    #[error("the system's limit of watched files is exhausted")]
    Limit,
    /// It cannot be watched otherwise.
    #[error("{0}")]
    Failed(String),
    /// Something was changed, and nothing was heard.
    #[error("a file was written, and no event came within {} s", .0.as_secs())]
    Silent(Duration),
}

impl From<notify::Error> for WatchError {
    fn from(error: notify::Error) -> Self {
        // EMFILE: no further inotify instance.
        let is_limit = match &error.kind {
            notify::ErrorKind::MaxFilesWatch => true,
            notify::ErrorKind::Io(error) => matches!(error.raw_os_error(), Some(24)) && cfg!(unix),
            _ => false,
        };
        if is_limit { Self::Limit } else { Self::Failed(error.to_string()) }
    }
}

/// Watches `folders`, for a moment, as a project's are watched; nothing is written there.
///
/// # Errors
/// When one of them cannot be watched.
pub(crate) fn try_watching<'p>(folders: impl IntoIterator<Item = &'p Path>) -> Result<(), WatchError> {
    let mut watcher = notify::recommended_watcher(|_: notify::Result<notify::Event>| {})?;
    for folder in folders {
        watcher.watch(folder, RecursiveMode::Recursive)?;
    }
    Ok(())
}

/// Writes a file in `folder`, which is empty, and waits for the event.
///
/// # Errors
/// When none comes within `limit`.
pub(crate) fn try_event(folder: &Path, limit: Duration) -> Result<(), WatchError> {
    let (heard, events) = channel();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.is_ok() {
            let _ = heard.send(());
        }
    })?;
    watcher.watch(folder, RecursiveMode::Recursive)?;
    std::fs::write(folder.join("written"), "1").map_err(|error| WatchError::Failed(error.to_string()))?;
    events.recv_timeout(limit).map_err(|_| WatchError::Silent(limit))
}
