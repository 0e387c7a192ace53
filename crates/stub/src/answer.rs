//! The answer to one request: bytes, waits, and the end of the connection.
//!
//! An answer is built before it is sent, so that a stream costs no more than its writes. Body pieces are framed as
//! HTTP/1.1 chunks. Use [`Act::Write`] for other framing.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

/// An action of the server while it answers.
#[derive(Clone)]
pub enum Act {
    /// Writes bytes.
    Write(Vec<u8>),
    /// Waits. The time is measured from the end of the last wait, so that a long stream keeps its pace.
    Wait(Duration),
    /// Writes bytes repeatedly.
    Repeat {
        /// The bytes.
        bytes: Vec<u8>,
        /// The number of repetitions. `None` repeats until the client closes the connection.
        times: Option<u64>,
        /// The wait after each repetition.
        every: Duration,
    },
    /// Writes bytes as fast as the client reads, until it closes the connection.
    Endless(Vec<u8>),
    /// Sends nothing more and keeps the connection open until the client closes it.
    Silence,
    /// Closes the connection (FIN).
    Close,
    /// Resets the connection (RST), shortly after the last write.
    Reset,
    /// Writes bytes that are computed at that moment. The function runs on the server's thread and must not block.
    Make(Arc<dyn Fn() -> Vec<u8> + Send + Sync>),
    /// Calls a function on the server's thread. It must not block.
    Do(Arc<dyn Fn() + Send + Sync>),
}

impl std::fmt::Debug for Act {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Write(bytes) => write!(f, "Write({})", String::from_utf8_lossy(bytes).escape_debug()),
            Self::Wait(time) => write!(f, "Wait({time:?})"),
            Self::Repeat { bytes, times, every } => {
                write!(f, "Repeat({} bytes, {times:?} times, every {every:?})", bytes.len())
            }
            Self::Endless(bytes) => write!(f, "Endless({} bytes)", bytes.len()),
            Self::Silence => f.write_str("Silence"),
            Self::Close => f.write_str("Close"),
            Self::Reset => f.write_str("Reset"),
            Self::Make(_) => f.write_str("Make"),
            Self::Do(_) => f.write_str("Do"),
        }
    }
}

/// An answer: a sequence of [`Act`]s. After the last one the connection accepts the next request.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    acts: Vec<Act>,
}

impl Answer {
    /// Returns an answer that never sends anything.
    pub fn silent() -> Self {
        Self::default().then(Act::Silence)
    }

    /// Returns the head of a chunked answer.
    pub fn head(status: u16, headers: &[(&str, &str)]) -> Self {
        let mut head = format!("HTTP/1.1 {status} {}\r\ntransfer-encoding: chunked\r\n", reason(status));
        for (name, value) in headers {
            // Writing to a string does not fail.
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        Self::default().then(Act::Write(head.into_bytes()))
    }

    /// Returns the head of an event stream.
    pub fn stream() -> Self {
        Self::head(200, &[("content-type", "text/event-stream")])
    }

    /// Returns a complete answer with one body piece.
    pub fn whole(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        Self::head(status, headers).piece(body).end()
    }

    /// Returns a complete JSON answer.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::whole(status, &[("content-type", "application/json")], &body.to_string())
    }

    /// Returns a complete answer with an error object.
    pub fn error(status: u16, headers: &[(&str, &str)], message: &str) -> Self {
        Self::whole(status, headers, &json!({"error": {"message": message}}).to_string())
    }

    /// Returns a complete event stream: the chunks and `[DONE]`.
    pub fn chunks(chunks: &[Value]) -> Self {
        let answer = chunks.iter().fold(Self::stream(), Self::chunk);
        answer.done().end()
    }

    /// Returns a complete stream of a text reply.
    pub fn text(text: &str) -> Self {
        Self::chunks(&[delta(text), finish("stop"), usage(3, 2)])
    }

    /// Returns a complete stream of calls. Each is a tool's name and its arguments as the model writes them.
    pub fn calls(calls: &[(&str, &str)]) -> Self {
        let chunks: Vec<Value> = calls
            .iter()
            .enumerate()
            .map(|(index, (name, arguments))| call(index, name, arguments))
            .chain([finish("tool_calls"), usage(5, 4)])
            .collect();
        Self::chunks(&chunks)
    }

    /// Appends an act.
    #[must_use]
    pub fn then(mut self, act: Act) -> Self {
        self.acts.push(act);
        self
    }

    /// Appends a wait.
    #[must_use]
    pub fn wait_ms(self, ms: u64) -> Self {
        self.then(Act::Wait(Duration::from_millis(ms)))
    }

    /// Inserts a wait before everything else.
    #[must_use]
    pub(super) fn delayed(mut self, delay: Duration) -> Self {
        if !delay.is_zero() {
            self.acts.insert(0, Act::Wait(delay));
        }
        self
    }

    /// Appends a body piece. An empty piece is skipped, since an empty chunk ends the body.
    #[must_use]
    pub fn piece(self, text: impl AsRef<[u8]>) -> Self {
        if text.as_ref().is_empty() { self } else { self.then(Act::Write(framed(text.as_ref()))) }
    }

    /// Appends a body piece that is computed when it is sent. An empty piece ends the body.
    #[must_use]
    pub fn computed_piece(self, make: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.then(Act::Make(Arc::new(move || framed(make().as_bytes()))))
    }

    /// Appends an event.
    #[must_use]
    pub fn chunk(self, chunk: &Value) -> Self {
        self.piece(event(chunk))
    }

    /// Appends a text chunk.
    #[must_use]
    pub fn delta(self, text: &str) -> Self {
        self.chunk(&delta(text))
    }

    /// Appends the event that ends a stream.
    #[must_use]
    pub fn done(self) -> Self {
        self.piece(DONE)
    }

    /// Appends the end of a chunked body.
    #[must_use]
    pub fn end(self) -> Self {
        self.then(Act::Write(END.to_vec()))
    }

    /// Splits the body so far into pieces of one byte. The first act must be the head.
    #[must_use]
    pub fn byte_by_byte(self) -> Self {
        self.rewritten(|body| body.iter().map(|byte| Act::Write(framed(&[*byte]))).collect())
    }

    /// Replaces every line end of the body so far with CR LF.
    #[must_use]
    pub fn crlf(self) -> Self {
        self.rewritten(|body| {
            let text = String::from_utf8_lossy(body).replace('\n', "\r\n");
            vec![Act::Write(framed(text.as_bytes()))]
        })
    }

    fn rewritten(self, rewrite: impl Fn(&[u8]) -> Vec<Act>) -> Self {
        let mut acts = Vec::new();
        for (index, act) in self.acts.into_iter().enumerate() {
            match act {
                Act::Write(bytes) if index > 0 && !bytes.starts_with(b"0\r\n") => {
                    acts.extend(rewrite(unframed(&bytes)));
                }
                act => acts.push(act),
            }
        }
        Self { acts }
    }

    /// Returns the acts.
    pub fn acts(&self) -> &[Act] {
        &self.acts
    }

    /// Returns the approximate memory use, in bytes.
    pub(super) fn size(&self) -> usize {
        let bytes = |act: &Act| match act {
            Act::Write(bytes) | Act::Repeat { bytes, .. } | Act::Endless(bytes) => bytes.len(),
            Act::Wait(_) | Act::Silence | Act::Close | Act::Reset | Act::Make(_) | Act::Do(_) => 0,
        };
        self.acts.iter().map(|act| size_of::<Act>() + bytes(act)).sum()
    }

    /// Removes everything after the first `count` acts.
    #[must_use]
    pub fn cut_after(mut self, count: usize) -> Self {
        self.acts.truncate(count);
        self
    }

    /// Returns the HTTP status, if the first bytes are a complete status line.
    pub fn status(&self) -> Option<u16> {
        let first = self.acts.iter().find_map(|act| match act {
            Act::Write(bytes) | Act::Repeat { bytes, .. } | Act::Endless(bytes) => Some(bytes.as_slice()),
            Act::Wait(_) | Act::Silence | Act::Close | Act::Reset | Act::Make(_) | Act::Do(_) => None,
        })?;
        let line = first.split(|byte| *byte == b'\r').next()?;
        let line = str::from_utf8(line).ok()?.strip_prefix("HTTP/1.")?;
        line.split(' ').nth(1)?.parse().ok()
    }
}

/// The event that ends a stream.
pub(super) const DONE: &str = "data: [DONE]\n\n";

/// The end of a chunked body.
pub(super) const END: &[u8] = b"0\r\n\r\n";

/// Returns an event of a stream.
pub fn event(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}

/// Returns an event of a stream, named after its `type`.
pub(super) fn named_event(json: &Value) -> String {
    format!("event: {}\n{}", json.get("type").and_then(Value::as_str).unwrap_or_default(), event(json))
}

/// Returns a text chunk.
pub fn delta(text: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {"content": text}}]})
}

/// Returns a chunk with a call. `arguments` is sent unchanged, valid JSON or not.
pub fn call(index: usize, name: &str, arguments: &str) -> Value {
    let function = json!({"name": name, "arguments": arguments});
    let calls =
        json!([{"index": index, "id": format!("call_{index}"), "type": "function", "function": function}]);
    json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]})
}

/// Returns a chunk with a finish reason.
pub fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// Returns a chunk with token counts.
pub fn usage(prompt: u64, completion: u64) -> Value {
    json!({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}})
}

/// Frames a body piece as an HTTP/1.1 chunk.
pub(super) fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{:x}\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes.extend_from_slice(b"\r\n");
    bytes
}

fn unframed(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    bytes.get(start..bytes.len().saturating_sub(2)).unwrap_or_default()
}

/// Returns the reason phrase of a status.
pub(super) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        301 => "Moved Permanently",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Scripted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_read_from_the_first_line() {
        assert_eq!(Answer::stream().status(), Some(200));
        assert_eq!(Answer::error(429, &[], "wait").status(), Some(429));
        assert_eq!(Answer::silent().status(), None);
        assert_eq!(Answer::default().then(Act::Write(b"hello".to_vec())).status(), None);
        assert_eq!(Answer::default().then(Act::Write(b"HTTP/1.1".to_vec())).status(), None);
    }

    #[test]
    fn byte_by_byte_and_crlf_change_only_the_body_framing() {
        let answer = Answer::stream().piece("a\nb").end();
        let bytes = |answer: &Answer| {
            let body = answer.acts().iter().skip(1).map(|act| match act {
                Act::Write(bytes) if bytes != END => String::from_utf8_lossy(unframed(bytes)).into_owned(),
                other => format!("<{other:?}>"),
            });
            body.collect::<Vec<_>>()
        };
        let end = "<Write(0\\r\\n\\r\\n)>";
        assert_eq!(bytes(&answer.clone().byte_by_byte()), ["a", "\n", "b", end]);
        assert_eq!(bytes(&answer.crlf()), ["a\r\nb", end]);
    }
}
