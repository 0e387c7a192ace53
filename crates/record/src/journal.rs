//! The interface of a journal, in which requests survive the end of their process.

use std::fmt;

use deftool_chat::request::{JournalEntry, RunConfig};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::recording::Session;

/// The start of a request, as a journal stores it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournaledRequest {
    /// The inputs from the environment.
    pub session: Session,
    /// The configuration of the request.
    pub config: RunConfig,
}

/// Persistent storage for requests, so that they survive the end of their process.
///
/// The entries of one request are stored in order, and those of one call of [`append`](Journal::append) completely or
/// not at all.
pub trait Journal: fmt::Debug + Send + Sync {
    /// Adds a request without waiting.
    fn begin(&self, request: JournaledRequest);

    /// Appends entries to a request without waiting. `at_ms`: milliseconds since the request was submitted.
    fn append(&self, request_id: &str, at_ms: u64, entries: Vec<JournalEntry>);

    /// Waits until a request and its entries so far are stored.
    ///
    /// # Errors
    /// If one of them could not be stored.
    fn commit(
        &self,
        request_id: &str,
        durability: Durability,
    ) -> BoxFuture<'static, Result<(), JournalError>>;
}

/// The event that stored entries survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// The end of the process.
    Process,
    /// A power failure.
    Machine,
}

/// An error: the journal cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JournalError(pub String);
