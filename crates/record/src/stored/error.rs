use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum file size, in bytes.
pub(super) const MAX_FILE: u64 = 1 << 30;

/// The form of a stored file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredForm {
    /// A recording: the bytes of the server, and all other inputs of requests.
    Recording,
    /// The conversation of `deftool chat` or `deftool acp`.
    Session,
    /// The events of requests, as `deftool run --json` prints them.
    Events,
}

impl StoredForm {
    /// Returns the version of the format. A new type of event changes it: older versions of deftool cannot read the line.
    pub(crate) const fn version(self) -> u32 {
        match self {
            Self::Recording => 3,
            Self::Session | Self::Events => 1,
        }
    }
}

impl fmt::Display for StoredForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Recording => "recording",
            Self::Session => "session",
            Self::Events => "list of events",
        })
    }
}

/// An error: a stored file cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.describe())]
pub struct StoredFileError {
    /// The expected form.
    pub form: StoredForm,
    /// Path of the file.
    pub path: PathBuf,
    /// The problem.
    pub problem: StoredFileProblem,
}

/// The problem of a stored file.
#[derive(Debug)]
pub enum StoredFileProblem {
    /// The file cannot be opened, written or read.
    Io(io::Error),
    /// A line is invalid.
    Malformed {
        /// Line number, from 1.
        line: usize,
        /// The reason.
        message: String,
    },
    /// The file exceeds the size limit.
    TooLarge,
    /// The format has this version, which is not supported.
    Version(u32),
    /// Another process writes the file.
    InUse,
}

impl StoredFileError {
    pub(crate) fn new(form: StoredForm, path: &Path, problem: StoredFileProblem) -> Self {
        Self { form, path: path.to_owned(), problem }
    }

    /// Returns a function that creates the error of a file that cannot be opened, read or written.
    pub fn io(form: StoredForm, path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::new(form, path, StoredFileProblem::Io(error))
    }

    pub(crate) fn malformed(form: StoredForm, path: &Path, line: usize, message: impl Into<String>) -> Self {
        Self::new(form, path, StoredFileProblem::Malformed { line, message: message.into() })
    }

    /// Whether the cause is an I/O error of this kind.
    pub fn is_io(&self, kind: io::ErrorKind) -> bool {
        matches!(&self.problem, StoredFileProblem::Io(error) if error.kind() == kind)
    }

    fn describe(&self) -> String {
        let path = self.path.display();
        match &self.problem {
            StoredFileProblem::Io(error) => format!("{} {path}: {error}", self.form),
            StoredFileProblem::Malformed { line, message } => {
                format!("{path}:{line}: not a line of a {}: {message}", self.form)
            }
            StoredFileProblem::TooLarge | StoredFileProblem::Version(_) | StoredFileProblem::InUse => {
                format!("{path}: {}", self.without_path())
            }
        }
    }

    /// Returns the message without the path of the file.
    pub fn without_path(&self) -> String {
        let form = self.form;
        match &self.problem {
            StoredFileProblem::Io(error) => error.to_string(),
            StoredFileProblem::Malformed { line, message } => {
                format!("line {line}: not a line of a {form}: {message}")
            }
            StoredFileProblem::TooLarge => format!("larger than the limit of {} MiB", MAX_FILE >> 20),
            StoredFileProblem::Version(found) => {
                let version = form.version();
                format!("unsupported {form} format {found}; this version of deftool reads format {version}")
            }
            StoredFileProblem::InUse => String::from("in use by another deftool process"),
        }
    }
}
