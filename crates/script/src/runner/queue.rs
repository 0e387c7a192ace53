//! The limits of the queue of calls, and its errors. Threads and processes share them.

use std::time::Duration;

use deftool_lang::tool::{ToolError, ToolErrorKind};

/// When a call has waited this long in the queue, another thread is started.
pub(crate) const MAX_QUEUE_WAIT: Duration = Duration::from_millis(50);
/// An additional thread exits after this time without a call.
pub(crate) const IDLE_LIMIT: Duration = Duration::from_secs(10);
/// Maximum number of calls in the queue.
pub(crate) const MAX_QUEUE: usize = 10_000;

/// Returns the error of a call after its runner was closed.
pub(crate) fn closed() -> ToolError {
    ToolError::new(ToolErrorKind::Canceled, "the script runner was closed")
}

/// Returns the error of a call when the queue is full.
pub(crate) fn queue_is_full() -> ToolError {
    let message = format!("the queue of script calls is full ({MAX_QUEUE} calls)");
    ToolError::new(ToolErrorKind::Internal, message)
}
