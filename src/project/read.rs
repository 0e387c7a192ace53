//! Files as text, whatever bytes they hold.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::diagnostic::Diagnostic;
use crate::project::rules;
use crate::text::{Location, SourceFile, SourceId, Sources, Span};

use super::ProjectError;

/// A spec file larger than this is none.
const MAX_BYTES: u64 = 256 << 20;

/// The byte order mark.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// A file's text; bytes that are not UTF-8 are replaced, and the first of them is told.
pub(super) struct SourceText {
    pub(super) path: PathBuf,
    text: String,
    bad_byte: Option<usize>,
    /// Whether the file began with a byte order mark, which is no part of `text`.
    has_mark: bool,
}

/// A file that may be written anew.
pub struct EditableFile {
    /// Its text, without a byte order mark.
    pub source: SourceId,
    /// Whether it began with a byte order mark.
    pub has_mark: bool,
    /// Why the text is not the file's: bytes that are no UTF-8.
    pub finding: Option<Diagnostic>,
}

impl EditableFile {
    /// The bytes of the file with the text `text`.
    pub fn bytes(&self, text: &str) -> Vec<u8> {
        [if self.has_mark { MARK } else { b"" }, text.as_bytes()].concat()
    }
}

/// Reads a file that may be written anew into `sources`, under a name relative to the folder `from`.
///
/// # Errors
/// When it cannot be read, is no regular file, or is larger than 256 MiB.
pub fn read_editable(path: &Path, sources: &mut Sources, from: &Path) -> Result<EditableFile, ProjectError> {
    Ok(read_source(path)?.make_editable(sources, from))
}

/// The same of bytes that came from elsewhere, called `name`.
pub fn take_editable(name: &Path, bytes: Vec<u8>, sources: &mut Sources, from: &Path) -> EditableFile {
    SourceText::new(name, bytes).make_editable(sources, from)
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
    Ok(SourceText::new(path, bytes))
}

impl SourceText {
    fn new(path: &Path, mut bytes: Vec<u8>) -> Self {
        // A byte order mark is no character of the first line.
        let has_mark = bytes.starts_with(MARK);
        if has_mark {
            bytes.drain(..MARK.len());
        }
        let path = path.to_owned();
        match String::from_utf8(bytes) {
            Ok(text) => Self { path, text, bad_byte: None, has_mark },
            Err(error) => {
                let bad_byte = Some(error.utf8_error().valid_up_to());
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                Self { path, text, bad_byte, has_mark }
            }
        }
    }

    fn make_editable(self, sources: &mut Sources, from: &Path) -> EditableFile {
        let has_mark = self.has_mark;
        let (source, finding) = self.add_to(sources, from);
        EditableFile { source, has_mark, finding }
    }

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
            let finding = Diagnostic::new(&rules::INVALID_UTF8, location, "this is not UTF-8");
            if is_text {
                finding.note("save the file as UTF-8; reading went on with a replacement character")
            } else {
                finding.note("the file holds no text and was not read")
            }
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
