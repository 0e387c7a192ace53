//! Waiting for the changes of one file that another process writes.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};

use super::file_systems::reports_all_changes;
use super::notifications::FileEvents;

/// Maximum wait on a file system that reports all changes.
const RARE: Duration = Duration::from_secs(5);

/// Maximum wait on other file systems, or without notifications.
const OFTEN: Duration = Duration::from_millis(300);

/// Watches a file, with notifications of the operating system where they work.
pub struct FileWatcher {
    events: Arc<FileEvents>,
    /// `None`: the file cannot be watched, and each wait takes its full time.
    _watcher: Option<RecommendedWatcher>,
    limit: Duration,
}

impl FileWatcher {
    /// Watches the file at `path`. Changes of an SQLite database are also those of its write-ahead log.
    pub fn new(path: &Path) -> Self {
        // The target of a link is in its own folder.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = path.parent().unwrap_or(&path);
        let name = path.file_name().unwrap_or_default();
        let mut log = name.to_owned();
        log.push("-wal");
        let events = Arc::new(FileEvents::of_files(folder, [name.to_owned(), log]));
        let recorder = Arc::clone(&events);
        let watcher = notify::recommended_watcher(move |event| recorder.record(event)).ok();
        let watcher = watcher.and_then(|mut watcher| {
            watcher.watch(folder, RecursiveMode::NonRecursive).ok()?;
            Some(watcher)
        });
        let limit = if watcher.is_some() && reports_all_changes(folder) { RARE } else { OFTEN };
        Self { events, _watcher: watcher, limit }
    }

    /// Waits until the file may have changed since the last wait: until a notification, or for a limited time.
    pub fn wait(&self) {
        self.events.wait(Instant::now() + self.limit);
        self.events.take();
    }
}
