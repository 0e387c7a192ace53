use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::error::{MAX_FILE, StoredFileError, StoredFileProblem, StoredForm};

/// Maximum length of a message about a line: names of unknown members may be long.
const MAX_MESSAGE: usize = 200;

/// The reason why a line is invalid.
#[derive(Debug)]
pub(crate) enum LineError {
    /// It is not JSON, or not a line of the form.
    Json(serde_json::Error),
    /// It does not fit to the lines before it.
    Misplaced(String),
    /// Its format has this version.
    Version(u32),
}

impl From<serde_json::Error> for LineError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

impl From<&str> for LineError {
    fn from(message: &str) -> Self {
        Self::Misplaced(message.to_owned())
    }
}

/// The end of reading a file.
#[derive(Debug, Default)]
pub(crate) struct ReadLines {
    /// The error of the first invalid line. The lines after it were not read.
    pub(crate) damage: Option<StoredFileError>,
    /// The total length of the lines that were read, in bytes.
    pub(crate) length: u64,
    /// Whether an incomplete last line was ignored: the process that wrote it was killed.
    pub(crate) is_cut: bool,
    /// Whether the last line is complete, but has no line end.
    pub(crate) lacks_line_end: bool,
}

/// Reads a file until its end or its first invalid line. `take` gets the number of each line and its bytes, which are
/// untrusted. A last line that is neither terminated nor valid is incomplete, unless it is the first one.
///
/// # Errors
/// If the file cannot be read, or is too large.
pub(crate) fn read_lines(
    file: impl Read,
    form: StoredForm,
    path: &Path,
    mut take: impl FnMut(usize, &[u8]) -> Result<(), LineError>,
) -> Result<ReadLines, StoredFileError> {
    let mut reader = BufReader::with_capacity(1 << 16, file.take(MAX_FILE + 1));
    let mut end = ReadLines::default();
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        let read = reader.read_until(b'\n', &mut bytes).map_err(StoredFileError::io(form, path))? as u64;
        if end.length + read > MAX_FILE {
            return Err(StoredFileError::new(form, path, StoredFileProblem::TooLarge));
        }
        if read == 0 {
            break;
        }
        let is_terminated = bytes.ends_with(b"\n");
        if !bytes.trim_ascii().is_empty()
            && let Err(error) = take(number, &bytes)
        {
            end.is_cut = !is_terminated && number > 1 && matches!(error, LineError::Json(_));
            end.damage = (!end.is_cut).then(|| damage_of(form, path, number, error));
            break;
        }
        end.length += read;
        end.lacks_line_end = !is_terminated;
    }
    Ok(end)
}

fn damage_of(form: StoredForm, path: &Path, number: usize, error: LineError) -> StoredFileError {
    let message = match error {
        LineError::Json(error) => describe_json_error(&error),
        LineError::Misplaced(message) => message,
        LineError::Version(found) => {
            return StoredFileError::new(form, path, StoredFileProblem::Version(found));
        }
    };
    StoredFileError::malformed(form, path, number, message)
}

/// Returns the text of an error without its position, which is relative to the line.
fn describe_json_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rfind(" at line ").and_then(|at| text.get(..at)).unwrap_or(&text);
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
