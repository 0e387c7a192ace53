//! The protocol between the engine and a child process: frames over the child's stdin and stdout.
//!
//! A frame is its length in four bytes, little-endian, and that many bytes of JSON: the message and, for calls and
//! answers, a payload after it. The payload is a separate value, so that the message does not increase its nesting
//! depth. Both sides validate lengths.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use deftool_lang::schema::Arguments;
use deftool_lang::spec::Effect;
use deftool_lang::tool::{CallContext, ToolError, TraceContext};
use serde::{Deserialize, Serialize};

use crate::events::LogLevel;
use crate::script::contract::{Contract, LoadError};

/// The first message of a child, which shows that both sides have the same version.
pub(super) const GREETING: &str = concat!("deftool script host ", env!("CARGO_PKG_VERSION"));

/// Time limit for a child's greeting.
pub(super) const START_LIMIT: Duration = Duration::from_secs(20);

/// Maximum length of a frame in either direction, in bytes.
pub(super) const MAX_FRAME: usize = 64 << 20;

/// A message from the engine to a child.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// Store this script under a number. Answered by [`Reply::Loaded`].
    Load(u64, Box<WireScript>),
    /// Drop the script with that number; it is not called again.
    Unload(u64),
    /// Run a call; its arguments follow. Answered by [`Reply::Returned`] or [`Reply::Failed`].
    Call(WireCall),
    /// Stop the running call.
    Cancel,
    /// Compile a source. Holds the file name for messages, and the source. Answered by [`Reply::Checked`].
    Check(String, Octets),
}

/// One call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireCall {
    /// The number of the call, which the answer repeats.
    pub(super) number: u64,
    pub(super) script: u64,
    /// The effective time limit.
    pub(super) timeout: Duration,
    pub(super) request_id: String,
    pub(super) job_name: String,
    pub(super) worker: String,
    pub(super) idempotency_key: String,
    pub(super) effect: Effect,
    pub(super) trace: Option<TraceContext>,
    /// Whether the child must send [`Reply::Used`] before the answer.
    pub(super) is_metered: bool,
}

impl WireCall {
    pub(super) fn context(&self) -> CallContext {
        CallContext {
            request_id: self.request_id.clone(),
            // Log lines get it in the other process.
            call_id: String::new(),
            job_name: self.job_name.clone(),
            worker: self.worker.clone(),
            idempotency_key: self.idempotency_key.clone(),
            effect: self.effect,
            trace: self.trace.clone(),
            timeout: Some(self.timeout),
            meter: self.is_metered.then(Arc::default),
        }
    }
}

/// A message from a child to the engine.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// [`GREETING`], once.
    Ready(String),
    /// The script is stored, whether it compiles or not.
    Loaded(u64),
    Logged(WireLevel, String),
    Progressed(Option<f64>, String),
    /// Resource usage of the call: run time of the top level, run time of the function, memory in bytes.
    Used(Duration, Duration, u64),
    /// The contract of the source, or the reason why it does not compile.
    Checked(Result<Contract, LoadError>),
    /// The call of that number returned; its result follows.
    Returned(u64),
    /// The call of that number failed.
    Failed(u64, ToolError),
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum WireLevel {
    Debug,
    Info,
    Warn,
    Error,
}

impl From<LogLevel> for WireLevel {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Debug => Self::Debug,
            LogLevel::Info => Self::Info,
            LogLevel::Warn => Self::Warn,
            LogLevel::Error => Self::Error,
        }
    }
}

impl From<WireLevel> for LogLevel {
    fn from(level: WireLevel) -> Self {
        match level {
            WireLevel::Debug => Self::Debug,
            WireLevel::Info => Self::Info,
            WireLevel::Warn => Self::Warn,
            WireLevel::Error => Self::Error,
        }
    }
}

/// The parts of a script that a child needs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireScript {
    pub(super) tool: String,
    pub(super) file: String,
    pub(super) source: Octets,
    pub(super) parameters: Vec<(String, bool)>,
    pub(super) is_async: bool,
    pub(super) memory: u64,
    pub(super) root: Option<Octets>,
    pub(super) modules: Vec<(String, Octets)>,
    pub(super) net: Vec<String>,
    pub(super) read: Vec<(String, Octets)>,
    pub(super) write: Vec<(String, Octets)>,
    pub(super) run: Vec<String>,
    pub(super) env: Vec<String>,
}

/// Bytes, serialised as a string if they are UTF-8.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Octets {
    Text(String),
    Bytes(Vec<u8>),
}

impl Octets {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Bytes(bytes.to_vec()),
        }
    }

    pub(super) fn of_path(path: &Path) -> Self {
        #[cfg(unix)]
        return Self::of(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()));
        #[cfg(not(unix))]
        return Self::Text(path.to_string_lossy().into_owned());
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    pub(super) fn into_path(self) -> PathBuf {
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
/// When the frame is longer than [`MAX_FRAME`].
pub(crate) fn write_frame(
    frames: &mut Vec<u8>,
    head: &impl Serialize,
    payload: Option<&impl Serialize>,
) -> io::Result<()> {
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
pub(crate) const NO_PAYLOAD: Option<&()> = None;

/// Returns the length in the first four bytes of a frame.
///
/// # Errors
/// When it exceeds [`MAX_FRAME`].
pub(super) fn frame_length(prefix: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(prefix) as usize;
    if length > MAX_FRAME {
        return Err(invalid(format!("a message of {length} bytes exceeds the limit of {MAX_FRAME} bytes")));
    }
    Ok(length)
}

/// Reads the body of one frame. Returns `None` at the end of `input`.
pub(crate) fn read_frame(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut prefix = [0; 4];
    match input.read_exact(&mut prefix) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = frame_length(prefix)?;
    let mut body = Vec::with_capacity(length.min(1 << 16));
    input.take(length as u64).read_to_end(&mut body)?;
    if body.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(body))
}

/// Returns the message in a frame's body, and the bytes after it.
pub(crate) fn head<'b, T: Deserialize<'b>>(body: &'b [u8]) -> io::Result<(T, &'b [u8])> {
    let mut values = serde_json::Deserializer::from_slice(body).into_iter::<T>();
    let head = values.next().ok_or_else(|| invalid(String::from("an empty message")))??;
    let rest = body.get(values.byte_offset()..).unwrap_or_default();
    Ok((head, rest))
}

/// Parses the arguments after a call.
pub(super) fn arguments(rest: &[u8]) -> io::Result<Arguments> {
    Ok(serde_json::from_slice(rest)?)
}

pub(super) fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_round_trip_and_invalid_frames_are_rejected() {
        let mut frames = Vec::new();
        write_frame(&mut frames, &Reply::Returned(7), Some(&serde_json::json!([1.5, null, "ü"]))).unwrap();
        write_frame(&mut frames, &Reply::Loaded(1), NO_PAYLOAD).unwrap();
        let mut input = frames.as_slice();
        let body = read_frame(&mut input).unwrap().unwrap();
        let (reply, rest) = head::<Reply>(&body).unwrap();
        assert!(matches!(reply, Reply::Returned(7)));
        assert_eq!(
            serde_json::from_slice::<serde_json::Value>(rest).unwrap(),
            serde_json::json!([1.5, null, "ü"])
        );
        let body = read_frame(&mut input).unwrap().unwrap();
        assert!(matches!(head::<Reply>(&body).unwrap(), (Reply::Loaded(1), [])));
        assert!(read_frame(&mut input).unwrap().is_none());

        for invalid in [&b"\xff\xff\xff\xff{}"[..], b"\x09\0\0\0{}"] {
            assert!(read_frame(&mut &*invalid).is_err(), "{invalid:?}");
        }
        for invalid in [&b""[..], b"{", b"null", b"[[[[[[[[", b"{\"Returned\":-1}", b"\0\xff"] {
            assert!(head::<Reply>(invalid).is_err(), "{invalid:?}");
        }
    }
}
