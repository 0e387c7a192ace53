//! `read`, `read_bytes` and `lines`: read files.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use super::access::Access;
use super::context::FsContext;
use super::grant::GrantedPath;
use super::open::open_file;
use crate::error::HostError;

/// Maximum number of bytes that one call of a function reads.
pub(super) const MAX_READ: u64 = 8 << 20;
/// Maximum number of lines that `lines` returns.
pub(super) const MAX_LINES: u64 = 100_000;
/// Number of bytes to read between two checks for cancellation.
const CHUNK: u64 = 1 << 20;

/// Returns the contents of a UTF-8 file.
pub(super) fn text(context: &FsContext, path: String) -> Result<String, HostError> {
    let target = context.grants.open(Access::Read, &path)?.existing()?;
    let (file, length) = open_file(&target)?;
    let too_long = || {
        target.invalid(format!(
            "is longer than {} MiB; use fs.lines or fs.read_bytes to read a part",
            MAX_READ >> 20
        ))
    };
    if length > MAX_READ {
        return Err(too_long());
    }
    let bytes = take(context, &target, file, MAX_READ + 1)?;
    // The file may have grown.
    if bytes.len() as u64 > MAX_READ {
        return Err(too_long());
    }
    String::from_utf8(bytes).map_err(|error| {
        target.invalid(format!("is not UTF-8 text (at byte {})", error.utf8_error().valid_up_to() + 1))
    })
}

/// Returns bytes of a file. Parameters: path, offset (from 0) and number of bytes.
pub(super) fn bytes(
    context: &FsContext,
    (path, offset, limit): (String, u64, Option<u64>),
) -> Result<Vec<u8>, HostError> {
    let target = context.grants.open(Access::Read, &path)?.existing()?;
    let (mut file, length) = open_file(&target)?;
    if limit.is_none() && length.saturating_sub(offset) > MAX_READ {
        return Err(target.invalid(format!("has more than {} MiB; set limit to read a part", MAX_READ >> 20)));
    }
    file.seek(SeekFrom::Start(offset)).map_err(|error| target.io_error(&error))?;
    take(context, &target, file, limit.unwrap_or(MAX_READ))
}

fn take(context: &FsContext, target: &GrantedPath, file: File, limit: u64) -> Result<Vec<u8>, HostError> {
    let mut bytes = Vec::new();
    let mut left = limit;
    loop {
        context.check_canceled()?;
        let chunk = left.min(CHUNK);
        let read = (&file).take(chunk).read_to_end(&mut bytes).map_err(|error| target.io_error(&error))?;
        left -= read as u64;
        if (read as u64) < chunk || left == 0 {
            return Ok(bytes);
        }
    }
}

/// Returns lines of a file, without line ends, and whether more follow. Parameters: path, first line (from 1) and
/// number of lines.
pub(super) fn lines(
    context: &FsContext,
    (path, from, count): (String, u64, u64),
) -> Result<(Vec<String>, bool), HostError> {
    let target = context.grants.open(Access::Read, &path)?.existing()?;
    let (file, _) = open_file(&target)?;
    let failed = |error| target.io_error(&error);
    let mut file = BufReader::with_capacity(64 << 10, file);
    for _ in 1..from {
        if !skip_line(context, &target, &mut file)? {
            return Ok((Vec::new(), false));
        }
    }
    let mut lines = Vec::new();
    let mut left = MAX_READ;
    while (lines.len() as u64) < count {
        context.check_canceled()?;
        let mut line = Vec::new();
        let read = (&mut file).take(left + 1).read_until(b'\n', &mut line).map_err(failed)? as u64;
        if read == 0 {
            return Ok((lines, false));
        }
        let number = from + lines.len() as u64;
        if read > left {
            // The limit is reached. A single longer line can only be read with `read_bytes`.
            if lines.is_empty() {
                return Err(target.invalid(format!(
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
            .map_err(|_| target.invalid(format!("is not UTF-8 text (in line {number})")))?;
        lines.push(line);
    }
    let more = !file.fill_buf().map_err(failed)?.is_empty();
    Ok((lines, more))
}

/// Skips a line. Returns whether there was one.
fn skip_line(context: &FsContext, target: &GrantedPath, file: &mut impl BufRead) -> Result<bool, HostError> {
    let mut any = false;
    loop {
        let buffer = file.fill_buf().map_err(|error| target.io_error(&error))?;
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
        context.check_canceled()?;
    }
}
