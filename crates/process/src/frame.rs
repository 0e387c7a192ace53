//! Messages between this process and its child processes.
//!
//! A frame is its length in four bytes, little-endian, and that many bytes of JSON: the message and an optional payload
//! after it. The payload is a separate value, so that the message does not increase its nesting depth. Both sides
//! validate lengths.

use std::ffi::{OsStr, OsString};
use std::io::{Error, ErrorKind, Read, Result};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Maximum length of a frame, in bytes.
const MAX_FRAME: usize = 64 << 20;

/// Bytes, serialised as a string if they are UTF-8.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Octets {
    /// UTF-8.
    Text(String),
    /// Other bytes.
    Bytes(Vec<u8>),
}

impl Octets {
    /// Creates a value with these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Bytes(bytes.to_vec()),
        }
    }

    /// Creates a value with the bytes of `path`.
    pub fn of_path(path: &Path) -> Self {
        #[cfg(unix)]
        return Self::of(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()));
        #[cfg(not(unix))]
        return Self::Text(path.to_string_lossy().into_owned());
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// Converts the bytes to a path.
    pub fn into_path(self) -> PathBuf {
        match self {
            Self::Text(text) => PathBuf::from(text),
            #[cfg(unix)]
            Self::Bytes(bytes) => {
                PathBuf::from(OsString::from(<OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(&bytes)))
            }
            #[cfg(not(unix))]
            Self::Bytes(bytes) => PathBuf::from(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }
}

/// Appends the frame of `head` and the optional `payload` to `frames`.
///
/// # Errors
/// When the frame is longer than 64 MiB.
pub fn write_frame(
    frames: &mut Vec<u8>,
    head: &impl Serialize,
    payload: Option<&impl Serialize>,
) -> Result<()> {
    let start = frames.len();
    frames.extend([0; 4]);
    serde_json::to_writer(&mut *frames, head)?;
    if let Some(payload) = payload {
        serde_json::to_writer(&mut *frames, payload)?;
    }
    let length = frames.len() - start - 4;
    match (u32::try_from(length), frames.get_mut(start..start + 4)) {
        (Ok(prefix), Some(place)) if length <= MAX_FRAME => place.copy_from_slice(&prefix.to_le_bytes()),
        _ => {
            frames.truncate(start);
            return Err(invalid(format!("a message of {length} bytes is longer than {MAX_FRAME}")));
        }
    }
    Ok(())
}

/// No payload.
pub const NO_PAYLOAD: Option<&()> = None;

/// Returns the length in the first four bytes of a frame.
///
/// # Errors
/// When it exceeds 64 MiB.
pub fn frame_length(prefix: [u8; 4]) -> Result<usize> {
    let length = u32::from_le_bytes(prefix) as usize;
    if length > MAX_FRAME {
        return Err(invalid(format!("a message of {length} bytes exceeds the limit of {MAX_FRAME} bytes")));
    }
    Ok(length)
}

/// Reads the body of one frame. Returns `None` at the end of `input`.
///
/// # Errors
/// When `input` cannot be read, ends in a frame, or contains a frame that is longer than the limit.
pub fn read_frame(input: &mut impl Read) -> Result<Option<Vec<u8>>> {
    let mut prefix = [0; 4];
    match input.read_exact(&mut prefix) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = frame_length(prefix)?;
    let mut body = Vec::with_capacity(length.min(1 << 16));
    input.take(length as u64).read_to_end(&mut body)?;
    if body.len() < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(body))
}

/// Returns the message in a frame's body, and the bytes after it.
///
/// # Errors
/// When the body does not begin with such a message.
pub fn head<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<(T, &'b [u8])> {
    let mut values = serde_json::Deserializer::from_slice(body).into_iter::<T>();
    let head = values.next().ok_or_else(|| invalid(String::from("an empty message")))??;
    let rest = body.get(values.byte_offset()..).unwrap_or_default();
    Ok((head, rest))
}

/// Returns an error for a message that violates a protocol.
pub fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Message {
        Returned(u64),
        Loaded(u64),
    }

    #[test]
    fn frames_round_trip_and_invalid_frames_are_rejected() {
        let mut frames = Vec::new();
        write_frame(&mut frames, &Message::Returned(7), Some(&json!([1.5, null, "ü"]))).unwrap();
        write_frame(&mut frames, &Message::Loaded(1), NO_PAYLOAD).unwrap();
        let mut input = frames.as_slice();
        let body = read_frame(&mut input).unwrap().unwrap();
        let (message, rest) = head::<Message>(&body).unwrap();
        assert_eq!(message, Message::Returned(7));
        assert_eq!(serde_json::from_slice::<Value>(rest).unwrap(), json!([1.5, null, "ü"]));
        let body = read_frame(&mut input).unwrap().unwrap();
        assert_eq!(head::<Message>(&body).unwrap(), (Message::Loaded(1), &[][..]));
        assert!(read_frame(&mut input).unwrap().is_none());

        for invalid in [&b"\xff\xff\xff\xff{}"[..], b"\x09\0\0\0{}"] {
            assert!(read_frame(&mut &*invalid).is_err(), "{invalid:?}");
        }
        for invalid in [&b""[..], b"{", b"null", b"[[[[[[[[", b"{\"Returned\":-1}", b"\0\xff"] {
            assert!(head::<Message>(invalid).is_err(), "{invalid:?}");
        }
    }
}
