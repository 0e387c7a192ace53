//! The context of a running function, and the limits of how much a call may write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use deftool_lang::tool::ToolErrorKind;

use super::grant::FileGrants;
use crate::error::HostError;

/// Maximum number of bytes that a call may write.
pub(super) const MAX_WRITTEN: u64 = 64 << 20;
/// Maximum number of files and folders that a call may create.
const MAX_CREATED: u64 = 10_000;

/// The context of a running function of the `fs` table.
pub(super) struct FsContext {
    pub(super) grants: Arc<FileGrants>,
    pub(super) quota: Arc<Quota>,
    /// Whether the call was canceled.
    pub(super) canceled: Arc<AtomicBool>,
}

impl FsContext {
    /// Returns an error if the call was canceled.
    pub(super) fn check_canceled(&self) -> Result<(), HostError> {
        if self.canceled.load(Ordering::Relaxed) {
            let message = String::from("the call has ended");
            return Err(HostError { kind: ToolErrorKind::Canceled, message });
        }
        Ok(())
    }
}

/// The used part of a call's write limits. Updated on the IO threads, reset for each call.
#[derive(Debug, Default)]
pub(in crate::host) struct Quota {
    bytes: AtomicU64,
    created: AtomicU64,
}

impl Quota {
    /// Resets the counters for a new call.
    pub(in crate::host) fn reset(&self) {
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
