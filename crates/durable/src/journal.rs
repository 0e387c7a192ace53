//! A journal in one file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use deftool_chat::request::JournalEntry;
use deftool_record::{Durability, Journal, JournalError, JournaledRequest};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use crate::files::Files;
use crate::model::{OpenError, RequestSummary, describe};
use crate::queue::{Batch, Queue};
use crate::store::Store;

/// A journal in an SQLite database. While it exists, no other process can write to it.
pub struct SqliteJournal {
    path: PathBuf,
    queue: Arc<Queue>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Locked until the journal is closed.
    _lock: File,
}

impl std::fmt::Debug for SqliteJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteJournal").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SqliteJournal {
    /// Opens a journal. Creates the file if it does not exist.
    ///
    /// # Errors
    /// If the file is not a journal of this version, cannot be written, or another process has opened it.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_files(&Files::existing_or_new(path)?)
    }

    /// Opens an existing journal.
    ///
    /// # Errors
    /// Like [`open`](Self::open), or if the file does not exist.
    pub fn open_existing(path: &Path) -> Result<Self, OpenError> {
        Self::open_files(&Files::existing(path)?)
    }

    fn open_files(files: &Files) -> Result<Self, OpenError> {
        let path = &files.given;
        let lock = files.lock()?;
        files.create()?;
        let store = Store::create(files)?;
        let queue = Arc::<Queue>::default();
        let entries = Arc::clone(&queue);
        let writer = std::thread::Builder::new()
            .name(String::from("deftool-journal"))
            .spawn(move || write_all(store, &entries))
            .map_err(|error| OpenError::of_io(path, &error))?;
        Ok(Self { path: path.clone(), queue, writer: Mutex::new(Some(writer)), _lock: lock })
    }

    /// Returns the same journal, which stores `context` with each new request, for the program that continues it.
    pub fn with_context(self: Arc<Self>, context: String) -> Arc<dyn Journal> {
        Arc::new(ContextJournal { journal: self, context })
    }

    /// Returns the requests of the journal at `path`, oldest first. Another process may write to it. A damaged request
    /// does not affect the others.
    ///
    /// # Errors
    /// If the file is not a journal of this version or cannot be read.
    pub fn requests(path: &Path) -> Result<Vec<RequestSummary>, OpenError> {
        let requests = Store::read(path)?.requests()?;
        Ok(requests.into_iter().map(|(_, request)| request).collect())
    }

    /// Returns the start of a request of the journal at `path`, and its entries with their times.
    ///
    /// # Errors
    /// If the file is not a journal of this version or cannot be read, or the request is unknown or damaged.
    pub fn load(path: &Path, id: &str) -> Result<(JournaledRequest, Vec<(u64, JournalEntry)>), OpenError> {
        Store::read(path)?.load(id)
    }

    /// Removes the requests of the journal at `path` that `is_removed` selects. Returns their number, and the errors of
    /// selected requests that could not be removed.
    ///
    /// # Errors
    /// If the file is not a journal of this version or cannot be written, or another process has opened it.
    pub fn remove(
        path: &Path,
        is_removed: impl Fn(&RequestSummary) -> bool,
    ) -> Result<(usize, Vec<OpenError>), OpenError> {
        let files = Files::existing(path)?;
        let _lock = files.lock()?;
        let mut store = Store::write_to(&files)?;
        let (mut removed, mut errors) = (0, Vec::new());
        for (number, request) in store.requests()?.iter().filter(|(_, request)| is_removed(request)) {
            match store.remove(*number, &request.id) {
                Ok(()) => removed += 1,
                Err(error) => errors.push(error),
            }
        }
        Ok((removed, errors))
    }

    /// Writes everything and closes the file.
    ///
    /// # Errors
    /// If something could not be written.
    pub fn close(&self) -> Result<(), JournalError> {
        self.queue.close();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if writer.is_some_and(|writer| writer.join().is_err()) {
            return Err(JournalError(format!(
                "{}: internal error: the writer panicked",
                self.path.display()
            )));
        }
        self.queue.error().map_or(Ok(()), Err)
    }
}

impl Drop for SqliteJournal {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

impl Journal for SqliteJournal {
    fn begin(&self, request: JournaledRequest) {
        self.queue.push_request(request, String::new());
    }

    fn append(&self, request_id: &str, at_ms: u64, entries: Vec<JournalEntry>) {
        self.queue.push_entries(request_id, at_ms, entries);
    }

    // All requests so far are stored together.
    fn commit(&self, _: &str, durability: Durability) -> BoxFuture<'static, Result<(), JournalError>> {
        let (waiter, written) = oneshot::channel();
        self.queue.push_waiter(waiter, durability);
        async { written.await.unwrap_or_else(|_| Err(JournalError(String::from("the journal is closed")))) }
            .boxed()
    }
}

/// See [`SqliteJournal::with_context`].
#[derive(Debug)]
struct ContextJournal {
    journal: Arc<SqliteJournal>,
    context: String,
}

impl Journal for ContextJournal {
    fn begin(&self, request: JournaledRequest) {
        self.journal.queue.push_request(request, self.context.clone());
    }

    fn append(&self, request_id: &str, at_ms: u64, entries: Vec<JournalEntry>) {
        self.journal.append(request_id, at_ms, entries);
    }

    fn commit(&self, id: &str, durability: Durability) -> BoxFuture<'static, Result<(), JournalError>> {
        self.journal.commit(id, durability)
    }
}

/// Writes until the queue is closed.
fn write_all(mut store: Store, queue: &Queue) {
    while let Some(batch) = queue.take() {
        let Batch { items, waiters, durability } = batch;
        let written = store.write(items, durability).map_err(|error| {
            let (path, error) = (store.path().display(), describe(&error));
            let error = JournalError(format!("cannot write the journal {path}: {error}"));
            queue.fail(error.clone());
            error
        });
        for waiter in waiters {
            let _ = waiter.send(written.clone());
        }
    }
}
