//! The types that a journal returns.

use std::path::{Path, PathBuf};

use deftool_chat::request::FinalState;
use deftool_record::Session;
use rusqlite::{ErrorCode, ffi};

/// The format of the tables and of the entries in them.
pub(crate) const FORMAT: i64 = 1;

/// A request of a journal.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestSummary {
    /// The request's id.
    pub id: String,
    /// The context from [`SqliteJournal::with_context`](crate::SqliteJournal::with_context).
    pub context: String,
    /// The worker.
    pub worker: String,
    /// The last message of the user.
    pub prompt: String,
    /// What was submitted; `None`: damaged.
    pub session: Option<Session>,
    /// Unix time of the submission, in milliseconds.
    pub submitted_at_ms: u64,
    /// The final state; `None`: the request has not ended.
    pub state: Option<FinalState>,
    /// Why the request cannot be read, if it is damaged. The other fields may then be empty.
    pub damage: Option<String>,
}

/// An error: the journal cannot be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process writes to the journal.
    #[error("{} is in use by another deftool process", path.display())]
    Locked {
        /// The journal.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("{} is not a journal of deftool", path.display())]
    NotAJournal {
        /// The file.
        path: PathBuf,
    },
    /// Another version of deftool wrote the journal.
    #[error(
        "{} has format {found}, and this version of deftool reads format {}; continue its requests with the version \
         that wrote it",
        path.display(),
        FORMAT
    )]
    Format {
        /// The journal.
        path: PathBuf,
        /// Its format.
        found: i64,
    },
    /// The journal has no such request.
    #[error("unknown request {id}")]
    UnknownRequest {
        /// The id.
        id: String,
    },
    /// The file cannot be read or written, or is damaged.
    #[error("{}: {detail}", path.display())]
    Unreadable {
        /// The journal.
        path: PathBuf,
        /// The cause.
        detail: String,
    },
    /// The file, or one that SQLite keeps beside it, cannot be opened.
    #[error("{}: {detail}", path.display())]
    NotOpened {
        /// The journal.
        path: PathBuf,
        /// The cause.
        detail: String,
    },
    /// Changes of the journal are in a second file, which cannot be used in a read-only folder.
    #[error(
        "{} has changes in {}, which cannot be read in this folder; copy both files to a folder that you can write",
        path.display(),
        changes.display()
    )]
    UnreadableChanges {
        /// The journal.
        path: PathBuf,
        /// The file with its changes.
        changes: PathBuf,
    },
}

impl OpenError {
    pub(crate) fn of_io(path: &Path, error: &std::io::Error) -> Self {
        Self::Unreadable { path: path.to_owned(), detail: error.to_string() }
    }

    pub(crate) fn of_sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotAJournal { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { path },
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => {
                Self::NotOpened { path, detail: describe(error) }
            }
            _ => Self::Unreadable { path, detail: describe(error) },
        }
    }
}

/// Describes an error of SQLite for a user.
pub(crate) fn describe(error: &rusqlite::Error) -> String {
    const NO_SPACE: &str = "the disk is full";
    const NO_LOCKS: &str = "the file system does not support the locks of a journal, as many network file systems; store the \
                            journal on a local disk";
    let Some(found) = error.sqlite_error() else { return error.to_string() };
    match (found.code, found.extended_code) {
        (ErrorCode::DiskFull, _) | (_, ffi::SQLITE_IOERR_SHMSIZE) => String::from(NO_SPACE),
        (ErrorCode::FileLockingProtocolFailed, _)
        | (
            _,
            ffi::SQLITE_IOERR_LOCK
            | ffi::SQLITE_IOERR_RDLOCK
            | ffi::SQLITE_IOERR_UNLOCK
            | ffi::SQLITE_IOERR_CHECKRESERVEDLOCK
            | ffi::SQLITE_IOERR_SHMLOCK
            | ffi::SQLITE_IOERR_SHMMAP,
        ) => String::from(NO_LOCKS),
        (ErrorCode::OperationInterrupted, _) => String::from("reading takes too long; the file is damaged"),
        _ => error.to_string(),
    }
}
