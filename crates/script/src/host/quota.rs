//! Limits how much a call may write. Updated on the IO threads, reset for each call.

use std::sync::atomic::{AtomicU64, Ordering};

use deftool_lang::tool::ToolErrorKind;

use crate::error::HostError;

/// Maximum number of bytes that a call may write.
pub(super) const MAX_WRITTEN: u64 = 64 << 20;
/// Maximum number of files and folders that a call may create.
const MAX_CREATED: u64 = 10_000;

/// The used part of a call's write limits.
#[derive(Debug, Default)]
pub(super) struct Quota {
    bytes: AtomicU64,
    created: AtomicU64,
}

impl Quota {
    /// Resets the counters for a new call.
    pub(super) fn reset(&self) {
        self.bytes.store(0, Ordering::Relaxed);
        self.created.store(0, Ordering::Relaxed);
    }

    /// Counts bytes before they are written.
    ///
    /// # Errors
    /// When the limit is exceeded.
    pub(super) fn add_bytes(&self, count: usize) -> Result<(), HostError> {
        let before = self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        if before.saturating_add(count as u64) > MAX_WRITTEN {
            return Err(exceeded(format!("a call may write at most {} MiB", MAX_WRITTEN >> 20)));
        }
        Ok(())
    }

    /// Counts a file or folder before it is created.
    ///
    /// # Errors
    /// When the limit is exceeded.
    pub(super) fn add_entry(&self) -> Result<(), HostError> {
        if self.created.fetch_add(1, Ordering::Relaxed) >= MAX_CREATED {
            return Err(exceeded(format!("a call may create at most {MAX_CREATED} files and folders")));
        }
        Ok(())
    }
}

fn exceeded(message: String) -> HostError {
    HostError { kind: ToolErrorKind::Script, message }
}
