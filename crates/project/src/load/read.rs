//! Reading of text files, with bounded size and a fallback for invalid UTF-8.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use deftool_lang::diagnostic::Diagnostic;
use deftool_lang::text::{Location, SourceFile, SourceId, Span};
use deftool_process::files::BYTE_ORDER_MARK;
use deftool_script::MAX_SOURCE;

use super::snapshot::FileStamp;
use crate::model::ProjectError;
use crate::paths::display_name;
use crate::rules;

/// Maximum size of a spec file in bytes.
pub(super) const MAX_BYTES: u64 = 256 << 20;

/// Read limit of scripts: one byte more than the size limit, so that a huge or endless file is rejected.
pub(super) const MAX_SCRIPT_READ: u64 = MAX_SOURCE as u64 + 1;

/// The text of a file. Invalid UTF-8 is replaced, and the first invalid byte is reported.
pub struct SourceText {
    pub(super) path: PathBuf,
    text: String,
    bad_byte: Option<usize>,
    /// Whether the file began with a byte order mark, which is not part of `text`.
    pub has_mark: bool,
}

/// Reads a stream called `name`.
///
/// # Errors
/// If it cannot be read, or is larger than 256 MiB.
pub fn read_stream(name: &str, input: impl Read) -> Result<SourceText, ProjectError> {
    let path = PathBuf::from(name);
    match read_bytes(input) {
        Ok(bytes) => Ok(SourceText::of_bytes(path, bytes)),
        Err(source) => Err(ProjectError::Unreadable { path, source }),
    }
}

/// Reads a spec file.
///
/// # Errors
/// If it cannot be read, is not a regular file, or is larger than 256 MiB.
pub fn read_source(path: &Path) -> Result<SourceText, ProjectError> {
    let read = read_regular(path, Known::Nothing, MAX_BYTES + 1).and_then(|read| check_size(read.bytes));
    match read {
        Ok(bytes) => Ok(SourceText::of_bytes(path.to_owned(), bytes)),
        Err(source) => Err(ProjectError::Unreadable { path: path.to_owned(), source }),
    }
}

fn read_bytes(input: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    check_size(bytes)
}

pub(super) fn check_size(bytes: Vec<u8>) -> std::io::Result<Vec<u8>> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(std::io::Error::other("file is larger than 256 MiB"));
    }
    Ok(bytes)
}

/// The content of a file.
pub(super) struct ReadFile {
    pub(super) bytes: Vec<u8>,
    /// The stamp before reading.
    pub(super) stamp: FileStamp,
}

/// The result of a scan for a path that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Nothing,
    /// A scan found a regular file, or a link to one.
    File,
    /// A scan found a regular file that is not a link.
    PlainFile,
}

/// Reads at most `most` bytes of a regular file. If the file was replaced by a pipe or a device, the function neither
/// reads nor blocks. A plain file that was replaced by a link is not read either.
///
/// # Errors
/// If it cannot be read or is not a regular file.
pub(super) fn read_regular(path: &Path, known: Known, most: u64) -> std::io::Result<ReadFile> {
    let not_regular = || std::io::Error::other("not a regular file");
    // Check before opening, because opening a device may have side effects.
    if known == Known::Nothing && !std::fs::metadata(path)?.is_file() {
        return Err(not_regular());
    }
    let file = open_nonblocking(path, known)?;
    let stamp = FileStamp::of(&file.metadata()?);
    if !stamp.is_file {
        return Err(not_regular());
    }
    let size = stamp.size.min(most);
    let mut bytes = Vec::with_capacity(size as usize);
    // Without a second read that finds the end of the file.
    (&file).take(size).read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        // The size of a file in `/proc` is 0.
        (&file).take(most).read_to_end(&mut bytes)?;
    }
    Ok(ReadFile { bytes, stamp })
}

#[cfg(unix)]
fn open_nonblocking(path: &Path, known: Known) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;

    use rustix::fs::OFlags;

    let link = if known == Known::PlainFile { OFlags::NOFOLLOW } else { OFlags::empty() };
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | link;
    std::fs::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

#[cfg(not(unix))]
fn open_nonblocking(path: &Path, _: Known) -> std::io::Result<File> {
    File::open(path)
}

impl SourceText {
    /// Creates a text that replaces the content of the file at `path`.
    pub(super) fn of(path: &Path, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned(), bad_byte: None, has_mark: false }
    }

    pub(super) fn contains(&self, word: &str) -> bool {
        self.text.contains(word)
    }

    /// Returns whether the text is the exact content of the file, except for a byte order mark.
    pub(super) fn is_lossless(&self) -> bool {
        self.bad_byte.is_none()
    }

    /// Creates an empty text in place of an unreadable file.
    pub(super) fn empty(path: &Path) -> Self {
        Self::of(path, "")
    }

    /// Creates the text from the bytes of the file at `path`.
    pub fn of_bytes(path: PathBuf, mut bytes: Vec<u8>) -> Self {
        // A byte order mark does not count as a character of the first line.
        let has_mark = bytes.starts_with(BYTE_ORDER_MARK);
        if has_mark {
            bytes.drain(..BYTE_ORDER_MARK.len());
        }
        match String::from_utf8(bytes) {
            Ok(text) => Self { path, text, bad_byte: None, has_mark },
            Err(error) => {
                let bad_byte = Some(error.utf8_error().valid_up_to());
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                Self { path, text, bad_byte, has_mark }
            }
        }
    }

    /// Returns the text if no bytes were replaced.
    pub fn into_text(self) -> Option<String> {
        self.is_lossless().then_some(self.text)
    }

    /// Returns whether the content is text. Invalid UTF-8 together with NUL bytes is not.
    pub fn is_text(&self) -> bool {
        self.bad_byte.is_none() || !self.text.contains('\0')
    }

    /// Converts the text to the source `id`, with a name relative to `from`, and the finding about invalid UTF-8.
    pub fn into_source(self, id: SourceId, from: &Path) -> (SourceFile, Option<Diagnostic>) {
        let is_text = self.is_text();
        // The UTF-16 byte order mark is two bytes that are invalid in UTF-8.
        let is_utf16 = !is_text && self.bad_byte == Some(0) && self.text.starts_with("\u{FFFD}\u{FFFD}");
        let source = SourceFile::new(display_name(&self.path, from), self.text);
        // The text before the first invalid byte is unchanged, so its offset is valid in the repaired text.
        let finding = self.bad_byte.map(|at| {
            let location = Location { source: id, span: Span::new(at, at + '\u{FFFD}'.len_utf8()) };
            rules::invalid_utf8::finding(location, is_text, is_utf16)
        });
        (source, finding)
    }
}
