//! The lines of a connection, with bounded memory. The library answers each request and each invalid line through a queue
//! without a limit, which a client that does not read would fill.
//!
//! So invalid lines are answered here, through a short queue: while it is full, nothing is read. The number of requests
//! without a response is limited, and a further request is answered with an error.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent_client_protocol::{Error, ErrorCode, RawJsonRpcId, RawJsonRpcMessage, TransportFrame};
use deftool_jsonrpc::MAX_MESSAGE;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::bytes::BytesMut;
use tokio_util::codec::{Decoder, FramedRead, LinesCodec, LinesCodecError};
use tokio_util::sync::PollSender;

/// Maximum length of an invalid line that its error repeats, in bytes.
const MAX_REPEATED: usize = 1000;

/// Maximum number of requests without a response.
const MAX_OPEN: usize = 1024;

/// Maximum number of lines that wait to be written.
const MAX_WAITING: usize = 16;

/// The written lines that wait for the output.
pub(crate) type Waiting = mpsc::Receiver<String>;

/// Returns the lines of `input` that are valid messages, a sink of lines, and the lines to pass to [`write`].
pub(crate) fn connect(
    input: impl AsyncRead + Send + 'static,
) -> (
    impl Sink<String, Error = io::Error> + Send + 'static,
    impl Stream<Item = io::Result<String>> + Send + 'static,
    Waiting,
) {
    let (sender, waiting) = mpsc::channel(MAX_WAITING);
    let open = Arc::new(OpenRequests::default());
    let written = Arc::clone(&open);
    let outgoing = PollSender::new(sender.clone())
        .sink_map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
        .with(move |line: String| {
            written.end(&line);
            std::future::ready(Ok::<_, io::Error>(line))
        });
    let lines = FramedRead::new(input, BoundedLines(LinesCodec::new_with_max_length(MAX_MESSAGE)));
    let incoming = lines.filter_map(move |line| {
        let (open, sender) = (Arc::clone(&open), sender.clone());
        async move {
            match line.map(|line| open.begin(&line).map(|()| line)) {
                Ok(Ok(line)) => Some(Ok(line)),
                Ok(Err(answer)) => {
                    // Fails only if the output has failed, which ends the connection.
                    let _ = sender.send(answer).await;
                    None
                }
                Err(error) => Some(Err(error)),
            }
        }
    });
    (outgoing, incoming, waiting)
}

/// Writes the lines until the connection ends, those that wait at once.
///
/// # Errors
/// If a line cannot be written.
pub(crate) async fn write(output: impl AsyncWrite, mut waiting: Waiting) -> io::Result<()> {
    let mut output = pin!(output);
    let mut lines = Vec::new();
    while waiting.recv_many(&mut lines, MAX_WAITING).await > 0 {
        // The end of the last line.
        lines.push(String::new());
        output.write_all(lines.join("\n").as_bytes()).await?;
        output.flush().await?;
        lines.clear();
    }
    Ok(())
}

/// The number of requests without a response.
#[derive(Default)]
struct OpenRequests(AtomicUsize);

impl OpenRequests {
    /// Counts the request of an incoming line.
    ///
    /// # Errors
    /// If the line is invalid, or if too many requests are open. The error is the line of the answer.
    fn begin(&self, line: &str) -> Result<(), String> {
        match TransportFrame::parse_json(line) {
            TransportFrame::Single(RawJsonRpcMessage::Request(request)) => {
                let one_more = |open| (open < MAX_OPEN).then_some(open + 1);
                let counted = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
                counted.map(drop).map_err(|_| {
                    let message = format!("more than {MAX_OPEN} requests are open");
                    answer(request.id, Error::new(ErrorCode::INVALID_REQUEST, message))
                })
            }
            TransportFrame::Malformed { mut error, .. } => {
                error.data = error.data.filter(|_| line.len() <= MAX_REPEATED);
                Err(answer(RawJsonRpcId::Null, error))
            }
            _ => Ok(()),
        }
    }

    /// Counts the response of an outgoing line.
    fn end(&self, line: &str) {
        if let TransportFrame::Single(RawJsonRpcMessage::Response(_)) = TransportFrame::parse_json(line) {
            let one_less = |open: usize| Some(open.saturating_sub(1));
            let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        }
    }
}

fn answer(id: RawJsonRpcId, error: Error) -> String {
    let frame = TransportFrame::Single(RawJsonRpcMessage::response(id, Err(error)));
    // An ID and an error are always serializable.
    frame.to_json().unwrap_or_default()
}

/// Decodes lines. A line that cannot be decoded becomes a line that is not JSON, so that the client receives an error.
struct BoundedLines(LinesCodec);

impl Decoder for BoundedLines {
    type Item = String;
    type Error = io::Error;

    fn decode(&mut self, bytes: &mut BytesMut) -> io::Result<Option<String>> {
        readable(self.0.decode(bytes))
    }

    fn decode_eof(&mut self, bytes: &mut BytesMut) -> io::Result<Option<String>> {
        readable(self.0.decode_eof(bytes))
    }
}

fn readable(decoded: Result<Option<String>, LinesCodecError>) -> io::Result<Option<String>> {
    match decoded {
        Ok(line) => Ok(line),
        Err(LinesCodecError::MaxLineLengthExceeded) => {
            Ok(Some(format!("message longer than {} MiB", MAX_MESSAGE >> 20)))
        }
        Err(LinesCodecError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
            Ok(Some(String::from("message with invalid UTF-8")))
        }
        Err(LinesCodecError::Io(error)) => Err(error),
    }
}
