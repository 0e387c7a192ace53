//! A project as an editor shows it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::loader::{LoadTarget, Loader};
use super::notifications::{FileEvents, FolderWatcher, Wakeup};
use crate::load::FoundFiles;
use crate::model::{Load, LoadOptions, ProjectError};

/// Maximum time that the watching thread waits before it waits again.
const WAIT: Duration = Duration::from_secs(3600);

/// A project with unsaved texts in place of files on disk. A load reuses everything that did not change since the
/// previous one.
pub struct EditedProject {
    loader: Loader,
    watcher: FolderWatcher,
    /// Closed when the project is dropped.
    events: Arc<FileEvents>,
    /// The files with a changed text since the last load.
    edited: HashSet<PathBuf>,
    /// Whether the files on disk must be scanned before the next load.
    needs_scan: bool,
}

impl EditedProject {
    /// Opens the project in the folder `root`, without loading it. `on_disk_change` is called in another thread after
    /// files of the project changed on disk.
    pub fn open(root: &Path, options: LoadOptions, on_disk_change: impl Fn() + Send + 'static) -> Self {
        let mut loader = Loader::new(LoadTarget::Project(root.to_owned()), root, options);
        loader.keep_going();
        let events = Arc::<FileEvents>::default();
        let thread_events = Arc::clone(&events);
        let notify = move || {
            loop {
                match thread_events.wait(Instant::now() + WAIT) {
                    Wakeup::Event => on_disk_change(),
                    Wakeup::Timeout => {}
                    Wakeup::Closed => return,
                }
            }
        };
        if let Err(error) = std::thread::Builder::new().name(String::from("deftool-watch")).spawn(notify) {
            tracing::warn!(%error, "cannot watch the project");
        }
        let watcher = FolderWatcher::new(&events);
        Self { loader, watcher, events, edited: HashSet::new(), needs_scan: true }
    }

    /// Replaces the content of a file, or returns to its content on disk. `path` must start with the root of the
    /// project as it was opened.
    pub fn set_text(&mut self, path: &Path, text: Option<Arc<str>>) {
        // A file that was closed may not exist.
        self.needs_scan |= text.is_none() || !self.loader.is_listed(path);
        match text {
            Some(text) => self.loader.overlay().set(path, text),
            None => self.loader.overlay().remove(path),
        }
        self.edited.insert(path.to_owned());
    }

    /// Scans the files on disk before the next load.
    pub fn rescan(&mut self) {
        self.needs_scan = true;
    }

    /// Returns whether the last load is outdated.
    pub fn is_stale(&self) -> bool {
        self.needs_scan || !self.edited.is_empty()
    }

    /// Returns whether there is a file at `path`, on disk or unsaved.
    pub fn exists(&self, path: &Path) -> bool {
        self.loader.exists(path)
    }

    /// Returns the text of a file: unsaved, as the last load read it, or on disk.
    pub fn text(&self, path: &Path) -> Option<Arc<str>> {
        self.loader.text(path)
    }

    /// Returns the files of the project that have one of these extensions, on disk or unsaved. Skips hidden files, links
    /// and projects in subfolders.
    pub fn find_files(&self, extensions: &[&str]) -> FoundFiles {
        self.loader.find_files(extensions)
    }

    /// Returns the scripts in `scripts/` itself, on disk or unsaved, at the last load.
    pub fn scripts(&self) -> &[PathBuf] {
        self.loader.scripts()
    }

    /// Loads the project. File names are relative to its root.
    ///
    /// # Errors
    /// If a folder cannot be read. An unreadable file is a finding.
    pub fn load(&mut self) -> Result<Load, ProjectError> {
        let edited = std::mem::take(&mut self.edited);
        let loaded = if std::mem::take(&mut self.needs_scan) {
            self.scan_and_load(&edited)
        } else {
            self.loader.load_edited(&edited)
        };
        match &loaded {
            Ok(_) => drop(self.loader.commit(&HashSet::new())),
            Err(_) => self.needs_scan = true,
        }
        loaded
    }

    fn scan_and_load(&mut self, edited: &HashSet<PathBuf>) -> Result<Load, ProjectError> {
        let batch = self.events.take();
        self.watcher.end_outdated(&batch);
        let mut scan = self.loader.scan();
        // A file in a new folder may have changed before the folder was watched.
        if self.watcher.watch_folders(&scan.snapshot) {
            scan = self.loader.scan();
        }
        let changed = self.loader.differences(&scan, None);
        let changed: Vec<PathBuf> =
            changed.into_iter().map(|(path, _)| path).chain(edited.iter().cloned()).collect();
        self.loader.load(scan, Some(changed.iter()), HashSet::new())
    }
}

impl Drop for EditedProject {
    fn drop(&mut self) {
        self.events.close();
    }
}
