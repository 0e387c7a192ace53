//! The timelines of all formats that `view` reads.

use std::path::Path;

use deftool_record::{Timeline, TimelineSource};

use super::journal;
use crate::cli::outcome::CliError;

/// Reads the timeline of a recording, a journal, a session or events.
///
/// # Errors
/// If the file cannot be read, has none of these formats, or contains no request that can be read.
pub(in crate::cli) fn read(path: &Path) -> Result<Timeline, CliError> {
    match TimelineSource::detect(path)? {
        TimelineSource::Journal => journal::timeline(path),
        TimelineSource::Recording | TimelineSource::Session | TimelineSource::Events => {
            Ok(Timeline::read(path)?)
        }
    }
}
