//! A minimal HTTP/1.1 server on a raw socket. An HTTP library would correct the injected faults.
//!
//! In: a listener and a function from a request to its answer. Each connection has its own task. The size of a request
//! is limited ([`MAX_HEAD`], [`MAX_BODY`](super::request::MAX_BODY)). An invalid request, or one of a web page, is answered
//! with an error status, and the connection is closed.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deftool_lang::text::web_page_refusal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use super::answer::{Act, Answer};
use super::request::{BadRequest, Chunks, Framing, Head, MAX_HEAD, Received, read_head};
use super::service::Service;

/// The time limit for reading a request, from its first byte.
const REQUEST_LIMIT: Duration = Duration::from_secs(60);
/// The wait before a reset, so that the client can read the last bytes.
const BEFORE_RESET: Duration = Duration::from_millis(50);
/// A stream that falls further behind restarts its schedule, so that a client that paused reading is not flooded.
const MAX_BEHIND: Duration = Duration::from_secs(1);

/// Accepts connections forever.
pub(super) async fn serve(listener: TcpListener, service: Arc<Service>) {
    let is_loopback = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                service.connected();
                tokio::spawn(serve_connection(socket, Arc::clone(&service), is_loopback));
            }
            // Usually out of file descriptors: wait until connections close.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// The state of the connection after an answer.
enum AfterAnswer {
    Open,
    Close,
    Reset,
}

async fn serve_connection(socket: TcpStream, service: Arc<Service>, is_loopback: bool) {
    let _ = socket.set_nodelay(true);
    let (mut read, mut write) = socket.into_split();
    let mut waiting = Vec::new();
    loop {
        let received = read_request(&mut read, &mut write, &mut waiting).await;
        let request = match received.and_then(|request| refuse_web_pages(request, is_loopback)) {
            Ok(Some(request)) => request,
            Ok(None) => return,
            Err(BadRequest { status, message }) => {
                let _ = play(&Answer::error(status, &[("connection", "close")], message), &mut write).await;
                // To close a connection with unread bytes is a reset, by which a client that still writes loses the
                // answer.
                let _ = write.shutdown().await;
                let _ = tokio::time::timeout(REQUEST_LIMIT, client_closed(&mut read)).await;
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

/// # Errors
/// If a web page may have sent the request.
fn refuse_web_pages(request: Option<Received>, is_loopback: bool) -> Result<Option<Received>, BadRequest> {
    let headers = request.iter().flat_map(|request| &request.headers);
    let headers = headers.map(|(name, value)| (name.as_str(), value.as_str()));
    match web_page_refusal(headers, is_loopback) {
        Some(message) => Err(BadRequest { status: 403, message }),
        None => Ok(request),
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
    let mut bytes = [0; 4096];
    while !matches!(read.read(&mut bytes).await, Ok(0) | Err(_)) {}
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
    let start = head_end + 4;
    let Head { headers, framing, .. } = read_head(buffer.get(..start).unwrap_or_default())?;
    if headers.iter().any(|(name, value)| name == "expect" && value.eq_ignore_ascii_case("100-continue")) {
        let _ = write.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await;
    }
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
            let mut chunks = Chunks::new(start);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_between_waits_does_not_accumulate() {
        let started = tokio::time::Instant::now();
        let (every, work) = (Duration::from_millis(10), Duration::from_millis(7));
        let mut pace = Pace::new();
        for _ in 0..40 {
            tokio::time::advance(work).await;
            pace.wait(every).await;
        }
        assert_eq!(started.elapsed(), every * 40);
    }
}
