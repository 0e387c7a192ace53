//! A journal in SQLite, in which requests survive the end of their process.
//!
//! ```no_run
//! # async fn example(config: deftool_worker::WorkerConfig) -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use deftool_durable::SqliteJournal;
//! use deftool_worker::WorkerConfig;
//!
//! let path = "requests.journal".as_ref();
//! let journal = Arc::new(SqliteJournal::open(path)?);
//! let config = WorkerConfig { journal: Some(journal), ..config };
//! for request in SqliteJournal::requests(path)?.iter().filter(|request| request.state.is_none()) {
//!     let (start, entries) = SqliteJournal::load(path, &request.id)?;
//!     // Continue it with `Worker::resume(start, entries, false)`.
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A request is stored as its start and its events ([`JournalEntry`](deftool_chat::request::JournalEntry)), and is
//! never rewritten as a whole. Before a call with an effect runs, the journal survives a power failure; everything else
//! survives the end of the process. The state machine of a request is restored from the entries; this crate contains no
//! request logic.
//!
//! One process writes a journal. Others can read it meanwhile. The content of a file is untrusted: only the tables of a
//! journal are read, with limits.

mod database;
mod files;
mod journal;
mod model;
mod queue;
mod store;

pub use journal::SqliteJournal;
pub use model::{OpenError, RequestSummary};
