//! `read`, `read_bytes` and `lines`: what is in a file.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use super::Work;
use super::grant::{Need, Place};
use super::open::open_file;
use crate::script::error::HostError;

/// Longest file, piece of a file or page of lines that is read, in bytes.
pub(super) const MAX_READ: u64 = 8 << 20;
/// Most lines of a page.
pub(super) const MAX_LINES: u64 = 100_000;
/// Bytes between two looks at whether the call still stands.
const STRIDE: u64 = 1 << 20;

/// The whole text of a file.
pub(super) fn text(work: &Work, path: String) -> Result<String, HostError> {
    let place = work.grants.open(Need::Read, &path)?.existing()?;
    let (file, length) = open_file(&place)?;
    let too_long = || {
        place.wrong(format!(
            "is longer than {} MiB; fs.lines and fs.read_bytes read a part of it",
            MAX_READ >> 20
        ))
    };
    if length > MAX_READ {
        return Err(too_long());
    }
    let bytes = take(work, &place, file, MAX_READ + 1)?;
    // It may have grown.
    if bytes.len() as u64 > MAX_READ {
        return Err(too_long());
    }
    String::from_utf8(bytes).map_err(|error| {
        place.wrong(format!("is not UTF-8 text (at byte {})", error.utf8_error().valid_up_to() + 1))
    })
}

/// A piece of a file: its path, from which byte (from 0), and how many.
pub(super) fn bytes(
    work: &Work,
    (path, offset, limit): (String, u64, Option<u64>),
) -> Result<Vec<u8>, HostError> {
    let place = work.grants.open(Need::Read, &path)?.existing()?;
    let (mut file, length) = open_file(&place)?;
    if limit.is_none() && length.saturating_sub(offset) > MAX_READ {
        return Err(
            place.wrong(format!("has more than {} MiB; say how many bytes with limit", MAX_READ >> 20))
        );
    }
    file.seek(SeekFrom::Start(offset)).map_err(|error| place.failed(&error))?;
    take(work, &place, file, limit.unwrap_or(MAX_READ))
}

fn take(work: &Work, place: &Place, file: File, most: u64) -> Result<Vec<u8>, HostError> {
    let mut bytes = Vec::new();
    let mut left = most;
    loop {
        work.go_on()?;
        let stride = left.min(STRIDE);
        let read = (&file).take(stride).read_to_end(&mut bytes).map_err(|error| place.failed(&error))?;
        left -= read as u64;
        if (read as u64) < stride || left == 0 {
            return Ok(bytes);
        }
    }
}

/// Some lines of a file, without their ends, and whether there are more: its path, from which line (from 1), how many.
pub(super) fn lines(
    work: &Work,
    (path, from, count): (String, u64, u64),
) -> Result<(Vec<String>, bool), HostError> {
    let place = work.grants.open(Need::Read, &path)?.existing()?;
    let (file, _) = open_file(&place)?;
    let told = |error| place.failed(&error);
    let mut file = BufReader::with_capacity(64 << 10, file);
    for _ in 1..from {
        if !skip_line(work, &place, &mut file)? {
            return Ok((Vec::new(), false));
        }
    }
    let mut lines = Vec::new();
    let mut left = MAX_READ;
    while (lines.len() as u64) < count {
        work.go_on()?;
        let mut line = Vec::new();
        let read = (&mut file).take(left + 1).read_until(b'\n', &mut line).map_err(told)? as u64;
        if read == 0 {
            return Ok((lines, false));
        }
        let number = from + lines.len() as u64;
        if read > left {
            // The page is full. A line that is longer than any page is read by nothing but read_bytes.
            if lines.is_empty() {
                return Err(place.wrong(format!(
                    "has more than {} MiB in line {number}; read it with fs.read_bytes",
                    MAX_READ >> 20
                )));
            }
            return Ok((lines, true));
        }
        left -= read;
        if line.ends_with(b"\n") {
            line.pop();
            if line.ends_with(b"\r") {
                line.pop();
            }
        }
        let line = String::from_utf8(line)
            .map_err(|_| place.wrong(format!("is not UTF-8 text (in line {number})")))?;
        lines.push(line);
    }
    let more = !file.fill_buf().map_err(told)?.is_empty();
    Ok((lines, more))
}

/// Whether there was a line.
fn skip_line(work: &Work, place: &Place, file: &mut impl BufRead) -> Result<bool, HostError> {
    let mut any = false;
    loop {
        let buffer = file.fill_buf().map_err(|error| place.failed(&error))?;
        if buffer.is_empty() {
            return Ok(any);
        }
        any = true;
        let end = memchr::memchr(b'\n', buffer);
        let used = end.map_or(buffer.len(), |at| at + 1);
        file.consume(used);
        if end.is_some() {
            return Ok(true);
        }
        work.go_on()?;
    }
}
