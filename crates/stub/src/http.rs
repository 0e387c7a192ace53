//! HTTP/1.1 on a raw socket, reduced to what a scripted server needs. An HTTP library would correct the injected
//! faults.
//!
//! In: a listener and a function from a request to its answer. Each connection has its own task. The size of a request
//! is limited ([`MAX_HEAD`], [`MAX_BODY`]). An invalid request is answered with an error status, and the connection is
//! closed.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use super::answer::{Act, Answer};
use super::conversation::messages;

/// The maximum size of a request head, in bytes.
pub const MAX_HEAD: usize = 64 << 10;
/// The maximum size of a request body, in bytes. The parsed JSON may take sixteen times as much memory.
pub const MAX_BODY: usize = 16 << 20;
/// The time limit for reading a request, from its first byte.
const REQUEST_LIMIT: Duration = Duration::from_secs(60);
/// The wait before a reset, so that the client can read the last bytes.
const BEFORE_RESET: Duration = Duration::from_millis(50);
/// A stream that is further behind its schedule gets a new one, so that a client that paused reading is not flooded.
const MAX_BEHIND: Duration = Duration::from_secs(1);

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
    pub(super) fn of_raw(raw: Vec<u8>, at: Instant) -> Option<Self> {
        let head_end = memchr::memmem::find(&raw, b"\r\n\r\n")?;
        let Head { line, headers, framing } = read_head(raw.get(..head_end)?).ok()?;
        let start = head_end + 4;
        let body = match framing {
            Framing::Length(length) => serde_json::from_slice(raw.get(start..start + length)?),
            Framing::Chunked => {
                let mut chunks = Chunks { body: Vec::new(), at: start };
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

    /// Returns the texts of the messages with this role, for either API.
    pub fn contents(&self, role: &str) -> Vec<String> {
        messages(self).filter(|message| message.role == role).map(|message| message.text()).collect()
    }
}

/// Callbacks of the HTTP server.
pub(super) trait Service: Send + Sync + 'static {
    /// Called when a client connects.
    fn connected(&self);

    /// Returns the answer to a request.
    fn answer(&self, request: Received) -> Arc<Answer>;

    /// Called when a client closes the connection in the middle of an answer.
    fn disconnected(&self);
}

/// Accepts connections forever.
pub(super) async fn serve(listener: TcpListener, service: Arc<dyn Service>) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                service.connected();
                tokio::spawn(serve_connection(socket, Arc::clone(&service)));
            }
            // Usually out of file descriptors: wait until connections close.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// What happens to the connection after an answer.
enum AfterAnswer {
    Open,
    Close,
    Reset,
}

async fn serve_connection(socket: TcpStream, service: Arc<dyn Service>) {
    let _ = socket.set_nodelay(true);
    let (mut read, mut write) = socket.into_split();
    let mut waiting = Vec::new();
    loop {
        let request = match read_request(&mut read, &mut write, &mut waiting).await {
            Ok(Some(request)) => request,
            Ok(None) => return,
            Err(BadRequest { status, message }) => {
                let _ = play(&Answer::error(status, &[("connection", "close")], message), &mut write).await;
                return;
            }
        };
        let is_last = request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let answer = service.answer(request);
        let played = tokio::select! {
            biased;
            played = play(&answer, &mut write) => played,
            // Pipelined requests are not supported, so bytes that arrive during an answer are dropped. End of input
            // means that the client disconnected.
            () = client_closed(&mut read) => Err(io::ErrorKind::ConnectionAborted.into()),
        };
        match played {
            Ok(AfterAnswer::Open) if is_last => return,
            Ok(AfterAnswer::Open) => {}
            Ok(AfterAnswer::Close) => return,
            Ok(AfterAnswer::Reset) => {
                if let Ok(socket) = read.reunite(write) {
                    let _ = socket.set_zero_linger();
                }
                return;
            }
            Err(_) => return service.disconnected(),
        }
    }
}

/// Performs the acts of an answer. Fails if the client disconnected.
async fn play(answer: &Answer, write: &mut OwnedWriteHalf) -> io::Result<AfterAnswer> {
    let mut pace = Pace::new();
    for act in answer.acts() {
        match act {
            Act::Write(bytes) => write.write_all(bytes).await?,
            Act::Wait(time) => pace.wait(*time).await,
            Act::Repeat { bytes, times, every } => {
                let mut left = *times;
                while left != Some(0) {
                    write.write_all(bytes).await?;
                    left = left.map(|left| left - 1);
                    if every.is_zero() {
                        // A socket that is always writable would starve other tasks.
                        tokio::task::yield_now().await;
                    } else {
                        pace.wait(*every).await;
                    }
                }
            }
            Act::Endless(bytes) => loop {
                write.write_all(bytes).await?;
                tokio::task::yield_now().await;
            },
            Act::Silence => pending().await,
            Act::Close => return Ok(AfterAnswer::Close),
            Act::Reset => {
                tokio::time::sleep(BEFORE_RESET).await;
                return Ok(AfterAnswer::Reset);
            }
            Act::Make(make) => write.write_all(&make()).await?,
            Act::Do(action) => action(),
        }
    }
    Ok(AfterAnswer::Open)
}

/// Schedules each wait from the end of the last one, so that the time between waits does not accumulate.
struct Pace {
    due: tokio::time::Instant,
}

impl Pace {
    fn new() -> Self {
        Self { due: tokio::time::Instant::now() }
    }

    async fn wait(&mut self, time: Duration) {
        let now = tokio::time::Instant::now();
        if now.saturating_duration_since(self.due) > MAX_BEHIND {
            self.due = now;
        }
        // If the time overflows, wait for one year.
        self.due = self.due.checked_add(time).unwrap_or(now + Duration::from_secs(365 * 24 * 3600));
        tokio::time::sleep_until(self.due).await;
    }
}

async fn client_closed(read: &mut OwnedReadHalf) {
    let mut bytes = [0; 512];
    while !matches!(read.read(&mut bytes).await, Ok(0) | Err(_)) {}
}

/// An invalid request.
struct BadRequest {
    status: u16,
    message: &'static str,
}

/// Reads a request. Returns `None` at the end of the connection. Bytes of the next request stay in `buffer`.
async fn read_request(
    read: &mut OwnedReadHalf,
    write: &mut OwnedWriteHalf,
    buffer: &mut Vec<u8>,
) -> Result<Option<Received>, BadRequest> {
    // There is no time limit between two requests.
    if buffer.is_empty() && read_more(read, buffer).await.is_none() {
        return Ok(None);
    }
    match tokio::time::timeout(REQUEST_LIMIT, read_rest(read, write, buffer)).await {
        Ok(request) => request,
        Err(_) => Err(BadRequest { status: 408, message: "the request was not complete within 60 s" }),
    }
}

async fn read_rest(
    read: &mut OwnedReadHalf,
    write: &mut OwnedWriteHalf,
    buffer: &mut Vec<u8>,
) -> Result<Option<Received>, BadRequest> {
    let mut searched = 0;
    let head_end = loop {
        let from = buffer.get(searched..).unwrap_or_default();
        if let Some(at) = memchr::memmem::find(from, b"\r\n\r\n") {
            break searched + at;
        }
        searched = buffer.len().saturating_sub(3);
        if buffer.len() > MAX_HEAD {
            return Err(BadRequest { status: 431, message: "the request head is larger than 64 KiB" });
        }
        if read_more(read, buffer).await.is_none() {
            return Ok(None);
        }
    };
    let Head { headers, framing, .. } = read_head(buffer.get(..head_end).unwrap_or_default())?;
    if headers.iter().any(|(name, value)| name == "expect" && value.eq_ignore_ascii_case("100-continue")) {
        let _ = write.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await;
    }
    let start = head_end + 4;
    let end = match framing {
        Framing::Length(length) => {
            while buffer.len() < start + length {
                if read_more(read, buffer).await.is_none() {
                    return Ok(None);
                }
            }
            start + length
        }
        Framing::Chunked => {
            let mut chunks = Chunks { body: Vec::new(), at: start };
            while !chunks.read(buffer)? {
                if read_more(read, buffer).await.is_none() {
                    return Ok(None);
                }
            }
            chunks.at
        }
    };
    let rest = buffer.split_off(end);
    let raw = std::mem::replace(buffer, rest);
    Ok(Received::of_raw(raw, Instant::now()))
}

async fn read_more(read: &mut OwnedReadHalf, buffer: &mut Vec<u8>) -> Option<()> {
    match read.read_buf(buffer).await {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(()),
    }
}

const TOO_LARGE: BadRequest = BadRequest { status: 413, message: "the request body is larger than 16 MiB" };

/// A request head.
struct Head {
    line: String,
    headers: Vec<(String, String)>,
    framing: Framing,
}

/// How the end of a body is determined.
enum Framing {
    Length(usize),
    Chunked,
}

fn read_head(head: &[u8]) -> Result<Head, BadRequest> {
    let bad = |message| BadRequest { status: 400, message };
    let head = str::from_utf8(head).map_err(|_| bad("the request head is not UTF-8"))?;
    let mut lines = head.lines();
    let line = lines.next().unwrap_or_default();
    let line = line
        .strip_suffix(" HTTP/1.1")
        .or_else(|| line.strip_suffix(" HTTP/1.0"))
        .filter(|line| line.split(' ').count() == 2)
        .ok_or(bad("expected a request line such as `POST /v1/chat/completions HTTP/1.1`"))?;
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
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
    Ok(Head { line: line.to_owned(), headers, framing })
}

/// An incremental decoder of a chunked body.
struct Chunks {
    body: Vec<u8>,
    /// The start of the next chunk.
    at: usize,
}

impl Chunks {
    /// Decodes the complete chunks in `bytes`. Returns whether the last chunk was among them.
    fn read(&mut self, bytes: &[u8]) -> Result<bool, BadRequest> {
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
        let read = |head: &str| read_head(head.as_bytes()).map(|head| head.line).map_err(|bad| bad.status);
        assert_eq!(read("POST /v1 HTTP/1.1\r\nA: b").as_deref(), Ok("POST /v1"));
        assert_eq!(read("GET / HTTP/1.0").as_deref(), Ok("GET /"));
        for bad in ["", "hello", "GET /", "GET  / HTTP/1.1", "GET / HTTP/2", "\u{0}"] {
            assert_eq!(read(bad), Err(400), "{bad:?}");
        }
        assert_eq!(read("GET / HTTP/1.1\r\ncontent-length: many"), Err(400));
        assert_eq!(read("GET / HTTP/1.1\r\ncontent-length: -1"), Err(400));
        assert_eq!(read("GET / HTTP/1.1\r\nContent-Length: 99999999999"), Err(413));
    }

    #[test]
    fn chunked_bodies_are_decoded() {
        let read = |bytes: &str| {
            let mut chunks = Chunks { body: Vec::new(), at: 0 };
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
