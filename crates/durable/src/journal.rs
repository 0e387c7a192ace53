//! A journal in one file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use deftool_chat::request::JournalEntry;
use deftool_project::{lock_private, open_or_create_private};
use deftool_worker::{Durability, Journal, JournalError, JournaledRequest};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

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
        let lock = lock(path)?;
        let created = open_or_create_private(path, File::options().write(true));
        drop(created.map_err(|error| OpenError::of_io(path, &error))?);
        let store = Store::create(path)?;
        let queue = Arc::<Queue>::default();
        let entries = Arc::clone(&queue);
        let writer = std::thread::Builder::new()
            .name(String::from("deftool-journal"))
            .spawn(move || write_all(store, &entries))
            .map_err(|error| OpenError::of_io(path, &error))?;
        Ok(Self { path: path.to_owned(), queue, writer: Mutex::new(Some(writer)), _lock: lock })
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
        Store::read(path)?.requests()
    }

    /// Returns the start of a request of the journal at `path`, and its entries with their times.
    ///
    /// # Errors
    /// If the file is not a journal of this version or cannot be read, or the request is unknown.
    pub fn load(path: &Path, id: &str) -> Result<(JournaledRequest, Vec<(u64, JournalEntry)>), OpenError> {
        Store::read(path)?.load(id)
    }

    /// Removes requests of the journal at `path`.
    ///
    /// # Errors
    /// If the file is not a journal of this version or cannot be written, another process has opened it, or a request is
    /// unknown.
    pub fn remove(path: &Path, ids: &[String]) -> Result<(), OpenError> {
        let _lock = lock(path)?;
        let mut store = Store::write_to(path)?;
        ids.iter().try_for_each(|id| store.remove(id))
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

/// Locks the journal for this process, with a file beside it.
fn lock(path: &Path) -> Result<File, OpenError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".lock");
    let unusable = |error: std::io::Error| {
        let beside = PathBuf::from(&beside);
        OpenError::of_io(&beside, &error)
    };
    let file = open_or_create_private(Path::new(&beside), File::options().write(true)).map_err(unusable)?;
    match lock_private(&file) {
        Ok(true) => Ok(file),
        Ok(false) => Err(OpenError::Locked { path: path.to_owned() }),
        Err(error) => Err(unusable(std::io::Error::other(format!(
            "{error}; network file systems often have no locks: store the journal on a local disk"
        )))),
    }
}
