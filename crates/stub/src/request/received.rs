//! The requests that the stub received, and the parser of their bytes.

use std::time::Instant;

use serde_json::Value;

/// The maximum size of a request head, in bytes.
pub const MAX_HEAD: usize = 64 << 10;
/// The maximum size of a request body, in bytes. The parsed JSON may take sixteen times as much memory.
pub const MAX_BODY: usize = 16 << 20;

/// A request that the stub received.
#[derive(Debug, Clone)]
pub struct Received {
    /// Method and path, query included: `POST /v1/chat/completions`.
    pub line: String,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, or null if it is not JSON.
    pub body: Value,
    /// The bytes of head and body.
    pub raw: Vec<u8>,
    /// The time at which it was read.
    pub at: Instant,
}

impl Received {
    /// Parses the bytes of a complete request.
    pub(crate) fn of_raw(raw: Vec<u8>, at: Instant) -> Option<Self> {
        let head_end = memchr::memmem::find(&raw, b"\r\n\r\n")?;
        let start = head_end + 4;
        let Head { line, headers, framing } = read_head(raw.get(..start)?).ok()?;
        let body = match framing {
            Framing::Length(length) => serde_json::from_slice(raw.get(start..start + length)?),
            Framing::Chunked => {
                let mut chunks = Chunks::new(start);
                chunks.read(&raw).ok()?;
                serde_json::from_slice(&chunks.body)
            }
        };
        Some(Self { line, headers, body: body.unwrap_or_default(), raw, at })
    }

    /// Returns the value of the header `name`, which must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the method, such as `POST`.
    pub fn method(&self) -> &str {
        self.line.split(' ').next().unwrap_or_default()
    }

    /// Returns the path without the query, such as `/v1/chat/completions`.
    pub fn path(&self) -> &str {
        let target = self.line.split(' ').nth(1).unwrap_or_default();
        target.split('?').next().unwrap_or_default()
    }

    /// Returns the messages of a chat completions request.
    pub fn messages(&self) -> &[Value] {
        self.body.get("messages").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
}

/// An invalid request.
pub(crate) struct BadRequest {
    pub(crate) status: u16,
    pub(crate) message: &'static str,
}

const TOO_LARGE: BadRequest = BadRequest { status: 413, message: "the request body is larger than 16 MiB" };

/// A request head.
pub(crate) struct Head {
    line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) framing: Framing,
}

/// How the end of a body is determined.
pub(crate) enum Framing {
    Length(usize),
    Chunked,
}

/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 256;

/// Parses a request head, with the empty line at its end.
pub(crate) fn read_head(head: &[u8]) -> Result<Head, BadRequest> {
    let bad = |message| BadRequest { status: 400, message };
    let mut parsed = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut parsed);
    let is_complete = request.parse(head).is_ok_and(|status| status.is_complete());
    let (Some(method), Some(target), true) = (request.method, request.path, is_complete) else {
        return Err(bad(
            "invalid request head; expected a line such as `POST /v1/chat/completions HTTP/1.1`",
        ));
    };
    let line = format!("{method} {target}");
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let headers: Vec<(String, String)> =
        request.headers.iter().map(|header| (header.name.to_ascii_lowercase(), text(header.value))).collect();
    let find = |name| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let framing = if find("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        Framing::Chunked
    } else {
        let length = find("content-length").map_or(Ok(0), str::parse);
        let length: usize = length.map_err(|_| bad("invalid content-length"))?;
        if length > MAX_BODY {
            return Err(TOO_LARGE);
        }
        Framing::Length(length)
    };
    Ok(Head { line, headers, framing })
}

/// An incremental decoder of a chunked body.
pub(crate) struct Chunks {
    body: Vec<u8>,
    /// The start of the next chunk.
    pub(crate) at: usize,
}

impl Chunks {
    /// Returns a decoder of the body that starts at this index.
    pub(crate) fn new(start: usize) -> Self {
        Self { body: Vec::new(), at: start }
    }

    /// Decodes the complete chunks in `bytes`. Returns whether the last chunk was among them.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<bool, BadRequest> {
        let bad = || BadRequest { status: 400, message: "invalid chunk in the request body" };
        loop {
            let rest = bytes.get(self.at..).unwrap_or_default();
            let Some(line_end) = memchr::memmem::find(rest.get(..64).unwrap_or(rest), b"\r\n") else {
                return if rest.len() >= 64 { Err(bad()) } else { Ok(false) };
            };
            let line = str::from_utf8(rest.get(..line_end).unwrap_or_default()).map_err(|_| bad())?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| bad())?;
            // The encoding of many tiny chunks is larger than their content.
            if size > MAX_BODY || self.body.len() + size > MAX_BODY || self.at > 4 * MAX_BODY {
                return Err(TOO_LARGE);
            }
            let start = line_end + 2;
            let Some(after) = rest.get(start + size..start + size + 2) else { return Ok(false) };
            if after != b"\r\n" {
                return Err(bad());
            }
            self.body.extend_from_slice(rest.get(start..start + size).unwrap_or_default());
            self.at += start + size + 2;
            if size == 0 {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_heads_are_parsed_or_rejected() {
        let read = |head: &str| {
            let head = format!("{head}\r\n\r\n");
            read_head(head.as_bytes()).map(|head| head.line).map_err(|bad| bad.status)
        };
        assert_eq!(read("POST /v1 HTTP/1.1\r\nA: b").as_deref(), Ok("POST /v1"));
        assert_eq!(read("GET / HTTP/1.0").as_deref(), Ok("GET /"));
        for bad in
            ["", "hello", "GET /", "GET  / HTTP/1.1", "GET / HTTP/2", "\u{0}", "GET / HTTP/1.1\r\na b: c"]
        {
            assert_eq!(read(bad), Err(400), "{bad:?}");
        }
        assert_eq!(read("GET / HTTP/1.1\r\ncontent-length: many"), Err(400));
        assert_eq!(read("GET / HTTP/1.1\r\ncontent-length: -1"), Err(400));
        assert_eq!(read("GET / HTTP/1.1\r\nContent-Length: 99999999999"), Err(413));
    }

    #[test]
    fn chunked_bodies_are_decoded() {
        let read = |bytes: &str| {
            let mut chunks = Chunks::new(0);
            let is_whole = chunks.read(bytes.as_bytes()).map_err(|bad| bad.status)?;
            Ok((is_whole, String::from_utf8(chunks.body).unwrap(), chunks.at))
        };
        assert_eq!(read("3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\nrest"), Ok((true, String::from("abcde"), 24)));
        for part in ["", "3", "3\r\n", "3\r\nabc", "3\r\nabc\r\n", "3\r\nabc\r\n0\r\n"] {
            assert!(read(part).is_ok_and(|(is_whole, ..)| !is_whole), "{part:?}");
        }
        for bad in ["x\r\n", "3\r\nabcd\r\n", "\r\n\r\n", &"f".repeat(70)] {
            assert_eq!(read(bad), Err(400), "{bad:?}");
        }
        assert_eq!(read("fffffffff\r\n"), Err(413));
        assert_eq!(read("ffffffffffffffffff\r\n"), Err(400));
    }
}
