//! Kinds of access to files, and the errors for paths.

use deftool_lang::tool::ToolErrorKind;

use crate::error::{HostError, clean};

/// A kind of access to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Read the contents.
    Read,
    /// Create, change or remove.
    Write,
    /// List names and read metadata.
    Inspect,
}

impl Access {
    /// Returns the key of `:allow` that grants this access.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Read | Self::Inspect => "read",
            Self::Write => "write",
        }
    }
}

pub(super) fn io_error(access: Access, path: &str, error: &std::io::Error) -> HostError {
    // cap-std's error when a path would leave the folder through a link.
    if error.kind() == std::io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
        let path = display_path(path);
        return HostError {
            kind: ToolErrorKind::Permission,
            message: format!(
                "{path} is not allowed: it leads out of the granted folder; to allow its target, add it to \
                 :allow (:{} […]) in the spec",
                access.key()
            ),
        };
    }
    let message = match error.kind() {
        std::io::ErrorKind::NotFound => String::from("No such file or directory"),
        _ => error.to_string(),
    };
    let message = message.split(" (os error").next().unwrap_or_default();
    script_error(format!("{}: {message}", display_path(path)))
}

pub(super) fn script_error(message: String) -> HostError {
    HostError { kind: ToolErrorKind::Script, message }
}

pub(super) fn display_path(path: &str) -> String {
    clean(path, 200)
}
