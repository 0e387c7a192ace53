//! What a call has used up of what it may write; counted on the engine's IO threads, emptied with the call.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::script::error::HostError;
use crate::tool::ToolErrorKind;

/// Most bytes that a call writes.
pub(super) const MAX_WRITTEN: u64 = 64 << 20;
/// Most files and folders that a call makes.
const MAX_MADE: u64 = 10_000;

/// What a call has used up of its quotas.
#[derive(Debug, Default)]
pub(super) struct Spent {
    bytes: AtomicU64,
    made: AtomicU64,
}

impl Spent {
    /// Begins a call.
    pub(super) fn reset(&self) {
        self.bytes.store(0, Ordering::Relaxed);
        self.made.store(0, Ordering::Relaxed);
    }

    /// Counts what is to be written.
    pub(super) fn bytes(&self, count: usize) -> Result<(), HostError> {
        let before = self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        if before.saturating_add(count as u64) > MAX_WRITTEN {
            return Err(refused(format!("a call writes {} MiB at most", MAX_WRITTEN >> 20)));
        }
        Ok(())
    }

    /// Counts a file or folder that is to be made.
    pub(super) fn entry(&self) -> Result<(), HostError> {
        if self.made.fetch_add(1, Ordering::Relaxed) >= MAX_MADE {
            return Err(refused(format!("a call makes {MAX_MADE} files and folders at most")));
        }
        Ok(())
    }
}

fn refused(message: String) -> HostError {
    HostError { kind: ToolErrorKind::Script, message }
}
