//! Files as text, whatever bytes they hold.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::diagnostic::Diagnostic;
use crate::project::rules;
use crate::text::{Location, SourceFile, SourceId, Span};

use super::ProjectError;
use super::look::FileLook;

/// A spec file larger than this is none.
pub(super) const MAX_BYTES: u64 = 256 << 20;

/// What some editors put before UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A file's text; bytes that are not UTF-8 are replaced, and the first of them is told.
pub(crate) struct SourceText {
    pub(super) path: PathBuf,
    text: String,
    bad_byte: Option<usize>,
    /// Whether the file began with a byte order mark, which is no part of `text`.
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    // only the formatter writes what it read from stdin
    pub(crate) has_mark: bool,
}

/// Reads what comes through `input`, called `name`.
///
/// # Errors
/// When it cannot be read, or is larger than 256 MiB.
#[cfg(feature = "cli")]
pub(crate) fn read_stream(name: &str, input: impl Read) -> Result<SourceText, ProjectError> {
    let path = PathBuf::from(name);
    match read_bytes(input) {
        Ok(bytes) => Ok(SourceText::of_bytes(path, bytes)),
        Err(source) => Err(ProjectError::Unreadable { path, source }),
    }
}

/// Reads a spec file.
///
/// # Errors
/// When it cannot be read, is no regular file, or is larger than 256 MiB.
pub(crate) fn read_source(path: &Path) -> Result<SourceText, ProjectError> {
    let read = read_regular(path, MAX_BYTES + 1).and_then(|read| refuse_huge(read.bytes));
    match read {
        Ok(bytes) => Ok(SourceText::of_bytes(path.to_owned(), bytes)),
        Err(source) => Err(ProjectError::Unreadable { path: path.to_owned(), source }),
    }
}

#[cfg(feature = "cli")]
fn read_bytes(input: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    refuse_huge(bytes)
}

pub(super) fn refuse_huge(bytes: Vec<u8>) -> std::io::Result<Vec<u8>> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(std::io::Error::other("it is larger than 256 MiB"));
    }
    Ok(bytes)
}

/// A file as it was read.
pub(super) struct ReadFile {
    pub(super) bytes: Vec<u8>,
    /// What it looked like.
    pub(super) look: FileLook,
    /// Whether it looked the same before and after.
    pub(super) is_whole: bool,
}

/// Reads at most `most` bytes of a regular file. Whatever is put in its place between a look and its opening, a pipe or a
/// device, neither is read nor holds us up.
///
/// # Errors
/// When it cannot be read or is no regular file.
pub(super) fn read_regular(path: &Path, most: u64) -> std::io::Result<ReadFile> {
    let refused = || std::io::Error::other("it is no regular file");
    // To open some things is to do something.
    if !std::fs::metadata(path)?.is_file() {
        return Err(refused());
    }
    let file = open_without_waiting(path)?;
    let look = FileLook::of(&file.metadata()?);
    if !look.is_file {
        return Err(refused());
    }
    let mut bytes = Vec::with_capacity(look.size.min(most) as usize);
    (&file).take(most).read_to_end(&mut bytes)?;
    let is_whole = FileLook::of(&file.metadata()?) == look;
    Ok(ReadFile { bytes, look, is_whole })
}

#[cfg(unix)]
fn open_without_waiting(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;

    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    std::fs::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

#[cfg(not(unix))]
fn open_without_waiting(path: &Path) -> std::io::Result<File> {
    File::open(path)
}

impl SourceText {
    /// A text that stands in for what the file at `path` holds.
    pub(super) fn of(path: &Path, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned(), bad_byte: None, has_mark: false }
    }

    pub(super) fn contains(&self, word: &str) -> bool {
        self.text.contains(word)
    }

    /// Whether it is what the file holds, a byte order mark aside.
    pub(super) fn is_faithful(&self) -> bool {
        self.bad_byte.is_none()
    }

    /// No text at all, in place of a file that cannot be read.
    pub(super) fn none(path: &Path) -> Self {
        Self::of(path, "")
    }

    /// What was read from `path`.
    pub(crate) fn of_bytes(path: PathBuf, mut bytes: Vec<u8>) -> Self {
        // A byte order mark is no character of the first line.
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

    /// The text, if it is what was read.
    #[cfg(feature = "cli")]
    pub(crate) fn into_text(self) -> Option<String> {
        self.is_faithful().then_some(self.text)
    }

    /// Whether it is worth reading: bytes that are not UTF-8 and NUL together are no text.
    pub(crate) fn is_text(&self) -> bool {
        self.bad_byte.is_none() || !self.text.contains('\0')
    }

    /// The source `id`, under a name relative to `from`, where it lies beneath it.
    pub(crate) fn into_source(self, id: SourceId, from: &Path) -> (SourceFile, Option<Diagnostic>) {
        let is_text = self.is_text();
        // Its mark is two bytes that UTF-8 never has.
        let is_utf16 = !is_text && self.bad_byte == Some(0) && self.text.starts_with("\u{FFFD}\u{FFFD}");
        let source = SourceFile::new(display_name(&self.path, from), self.text);
        // Everything before the first bad byte is unchanged, so its offset holds in the mended text.
        let finding = self.bad_byte.map(|at| {
            let location = Location { source: id, span: Span::new(at, at + '\u{FFFD}'.len_utf8()) };
            rules::invalid_utf8::finding(location, is_text, is_utf16)
        });
        (source, finding)
    }
}

/// A path as the user would write it.
pub fn display_name(path: &Path, from: &Path) -> String {
    let path = path.strip_prefix(from).unwrap_or(path);
    let path = path.strip_prefix(".").unwrap_or(path);
    path.to_string_lossy().replace('\\', "/")
}
