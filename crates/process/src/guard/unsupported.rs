//! Guards need Unix. Without them, no program can be started.

use crate::HelperProgram;

/// Does nothing.
pub fn set_guard(_: HelperProgram) {}

/// Returns `false`.
pub fn has_guard() -> bool {
    false
}

/// Does nothing.
pub fn kill_programs() {}

/// Returns an error.
///
/// # Errors
/// Always.
pub fn serve_guard() -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
