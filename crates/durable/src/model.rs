//! The types that a journal returns.

use std::path::PathBuf;

use deftool_chat::request::FinalState;

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
    /// Unix time of the submission, in milliseconds.
    pub submitted_at_ms: u64,
    /// The final state; `None`: the request has not ended.
    pub state: Option<FinalState>,
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
}
