//! Files as text, whatever bytes they hold.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::diagnostic::Diagnostic;
use crate::project::rules;
use crate::text::{Location, SourceFile, SourceId, Sources, Span};

use super::ProjectError;

/// A spec file larger than this is none.
const MAX_BYTES: u64 = 256 << 20;

/// A file's text; bytes that are not UTF-8 are replaced, and the first of them is told.
pub(super) struct SourceText {
    pub(super) path: PathBuf,
    text: String,
    bad_byte: Option<usize>,
}

/// Reads a spec file.
///
/// # Errors
/// When it cannot be read, is no regular file, or is larger than 256 MiB.
pub(super) fn read_source(path: &Path) -> Result<SourceText, ProjectError> {
    let unreadable = |source| ProjectError::Unreadable { path: path.to_owned(), source };
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(unreadable(std::io::Error::other("it is no regular file")));
    }
    let mut bytes = Vec::with_capacity(metadata.len().min(MAX_BYTES) as usize);
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(unreadable(std::io::Error::other("it is larger than 256 MiB")));
    }
    // A byte order mark is no character of the first line.
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        bytes.drain(..3);
    }
    let path = path.to_owned();
    Ok(match String::from_utf8(bytes) {
        Ok(text) => SourceText { path, text, bad_byte: None },
        Err(error) => {
            let bad_byte = Some(error.utf8_error().valid_up_to());
            SourceText { path, text: String::from_utf8_lossy(error.as_bytes()).into_owned(), bad_byte }
        }
    })
}

impl SourceText {
    /// Whether it is worth reading: bytes that are not UTF-8 and NUL together are no text.
    pub(super) fn is_text(&self) -> bool {
        self.bad_byte.is_none() || !self.text.contains('\0')
    }

    /// Takes it in under a name relative to `from`, where it lies beneath it.
    pub(super) fn add_to(self, sources: &mut Sources, from: &Path) -> (SourceId, Option<Diagnostic>) {
        let is_text = self.is_text();
        let id = sources.add(SourceFile::new(display_name(&self.path, from), self.text));
        // Everything before the first bad byte is unchanged, so its offset holds in the mended text.
        let finding = self.bad_byte.map(|at| {
            let location = Location { source: id, span: Span::new(at, at + '\u{FFFD}'.len_utf8()) };
            rules::invalid_utf8::finding(location, is_text)
        });
        (id, finding)
    }
}

/// A path as the user would write it.
pub fn display_name(path: &Path, from: &Path) -> String {
    let path = path.strip_prefix(from).unwrap_or(path);
    let path = path.strip_prefix(".").unwrap_or(path);
    path.to_string_lossy().replace('\\', "/")
}
