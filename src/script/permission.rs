//! What a tool's spec allows its script, resolved by the layer above.
//!
//! Nothing is allowed unless it is listed. Only `read` is enforced here as yet; the other host tables that need a
//! permission do not exist.

use std::path::PathBuf;

/// A file or folder that a script may use, and everything beneath it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathGrant {
    /// As the spec's author wrote it, as in `notes/`; scripts name files below it in the same way.
    pub name: String,
    /// Where it is: an absolute path.
    pub path: PathBuf,
}

impl PathGrant {
    /// Grants `path` under `name`.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), path: path.into() }
    }
}

/// A spec's `:allow`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    /// `:net`: hosts.
    pub net: Vec<String>,
    /// `:read`: files and folders that may be read.
    pub read: Vec<PathGrant>,
    /// `:write`: files and folders that may be written.
    pub write: Vec<PathGrant>,
    /// `:run`: programs.
    pub run: Vec<String>,
    /// `:env`: environment variables.
    pub env: Vec<String>,
}
