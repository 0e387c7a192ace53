//! The format of a file, detected from its content.

use std::io::Read;
use std::path::Path;

use deftool_process::files::open_regular;

use super::model::{Timeline, TimelineError, TimelineSource};
use crate::recording::Recording;
use crate::session::SessionPart;

/// Maximum size of the beginning of a file that shows its format, in bytes.
const MAX_BEGINNING: u64 = 4096;

/// The message about a file without a known format: the formats, and the commands that write them.
const UNKNOWN: &str = "unknown format; expected a recording (`deftool run --record`, `deftool chat --record`), a journal \
    (`deftool run --journal`, `deftool rpc --journal`), a session (`deftool chat`, `deftool acp`) or the output of \
    `deftool run --json`";

impl TimelineSource {
    /// Detects the format of the file at `path`. The name of the file does not matter.
    ///
    /// # Errors
    /// If the file cannot be read, is empty, or has none of the formats.
    pub fn detect(path: &Path) -> Result<Self, TimelineError> {
        let io = |source| TimelineError::Io { path: path.to_owned(), source };
        let unknown = |reason| TimelineError::Unknown { path: path.to_owned(), reason };
        let mut start = Vec::new();
        open_regular(path).map_err(io)?.take(MAX_BEGINNING).read_to_end(&mut start).map_err(io)?;
        if start.starts_with(b"SQLite format 3\0") {
            return Ok(Self::Journal);
        }
        // Another program may have written the JSON with white space.
        start.retain(|byte| !byte.is_ascii_whitespace());
        match start.as_slice() {
            [] => Err(unknown("the file is empty")),
            start if start.starts_with(br#"{"record":"chat""#) => Ok(Self::Session),
            start if start.starts_with(br#"{"record":"#) => Ok(Self::Recording),
            start if start.starts_with(br#"{"type":"#) => Ok(Self::Events),
            _ => Err(unknown(UNKNOWN)),
        }
    }
}

impl Timeline {
    /// Reads the timeline of the recording, the session or the events at `path`. Ignores an incomplete last line. What
    /// follows an invalid line is missing, and [`Timeline::damage`] reports it.
    ///
    /// # Errors
    /// If the file cannot be read, has another format, or contains no request before its first invalid line.
    pub fn read(path: &Path) -> Result<Self, TimelineError> {
        match TimelineSource::detect(path)? {
            TimelineSource::Recording => {
                let (recording, damage) = Recording::read_until_damage(path)?;
                let damage = damage.iter().map(ToString::to_string).collect();
                Ok(Self { damage, ..Self::of_recording(recording) })
            }
            TimelineSource::Session => Ok(Self::of_session(path, SessionPart::read(path)?)),
            TimelineSource::Events => super::events::read(path),
            TimelineSource::Journal => {
                let reason = "expected a recording, a session or the output of `deftool run --json`";
                Err(TimelineError::Unknown { path: path.to_owned(), reason })
            }
        }
    }
}
