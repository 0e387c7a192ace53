//! Messages on a pair of streams, one a line, and the transport of a client. Messages that are ready at the same time are
//! written at once, as each write costs more than its message.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deftool_jsonrpc::MAX_MESSAGE;
use futures_util::StreamExt;
use rmcp::RoleServer;
use rmcp::model::{ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::{JsonRpcMessageCodec, JsonRpcMessageCodecError};
use serde::Serialize;
use serde_json::error::Category;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio_util::bytes::{Buf, BufMut, BytesMut};
use tokio_util::codec::{Decoder, FramedRead};

/// The error of a larger message.
pub(crate) const TOO_LARGE: &str = "the message is larger than 32 MiB";

/// The bytes that are kept of the beginning, and of the end, of a larger message.
const KEPT: usize = 1024;

type Received = RxJsonRpcMessage<RoleServer>;
type Sent = TxJsonRpcMessage<RoleServer>;

/// The transport of one client.
pub(crate) struct LineTransport<R, W> {
    input: FramedRead<R, Lines>,
    output: Arc<Output<W>>,
    /// The end of the last answer to an invalid message, if it is not written yet.
    refusal: Option<u64>,
}

impl<R: AsyncRead, W: AsyncWrite + Unpin> LineTransport<R, W> {
    pub(crate) fn new(input: R, output: W) -> Self {
        let input = FramedRead::new(input, Lines::default());
        Self { input, output: Arc::new(Output::new(output)), refusal: None }
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: Sent) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let queued = self.output.push(&message);
        let output = Arc::clone(&self.output);
        async move {
            let end = queued?;
            // First all results that are ready are queued.
            tokio::task::yield_now().await;
            output.write_until(end).await
        }
    }

    async fn receive(&mut self) -> Option<Received> {
        loop {
            // While the client does not read the answer, nothing is read.
            if let Some(end) = self.refusal {
                self.output.write_until(end).await.ok()?;
                self.refusal = None;
            }
            let (error, id) = match self.input.next().await?.ok()? {
                Line::Message(mut line) => match JsonRpcMessageCodec::new().decode(&mut line) {
                    Ok(Some(message)) => return Some(message),
                    Err(JsonRpcMessageCodecError::Serde(error)) if error.classify() == Category::Data => {
                        ("Invalid request", None)
                    }
                    // Not JSON. An answer could cause another one at a peer that also answers such lines.
                    Ok(None) | Err(_) => continue,
                },
                Line::TooLong(LongLine { id: Some(id), is_request: true }) => (TOO_LARGE, Some(id)),
                Line::TooLong(_) => continue,
            };
            let error = JsonRpcMessage::error(ErrorData::invalid_request(error, None), id);
            self.refusal = Some(self.output.push::<Sent>(&error).ok()?);
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A line of the input.
pub(crate) enum Line {
    /// A line with its end.
    Message(BytesMut),
    TooLong(LongLine),
}

/// A message that is too large.
pub(crate) struct LongLine {
    pub(crate) id: Option<RequestId>,
    /// Whether it is a request or a notification.
    pub(crate) is_request: bool,
}

impl LongLine {
    /// Reads the members before and after the nested values, of the beginning and the end of a message.
    fn read(text: &str) -> Self {
        let (start, _) = text.match_indices('{').nth(1).map_or((text, ""), |(at, _)| text.split_at(at));
        let (_, end) = text.rmatch_indices('}').nth(1).map_or(("", ""), |(at, _)| text.split_at(at));
        let id = |part: &str| {
            let (_, value) = part.split_once("\"id\":")?;
            serde_json::Deserializer::from_str(value).into_iter().next()?.ok()
        };
        let is_request = start.contains("\"method\":") || end.contains("\"method\":");
        Self { id: id(start).or_else(|| id(end)), is_request }
    }
}

/// Decodes lines. One that is too long does not end the stream.
#[derive(Default)]
pub(crate) struct Lines {
    /// The number of bytes without a line end.
    scanned: usize,
    /// The beginning of a line that is too long, before its end was received.
    start: Option<Vec<u8>>,
}

impl Decoder for Lines {
    type Item = Line;
    type Error = io::Error;

    fn decode(&mut self, bytes: &mut BytesMut) -> io::Result<Option<Line>> {
        let mut rest = bytes.iter().skip(self.scanned);
        let end = rest.position(|byte| *byte == b'\n').map(|at| self.scanned + at);
        self.scanned = end.unwrap_or(bytes.len());
        if self.scanned > MAX_MESSAGE && self.start.is_none() {
            self.start = bytes.get(..KEPT).map(<[u8]>::to_vec);
        }
        if self.start.is_some() {
            bytes.advance(self.scanned.saturating_sub(KEPT));
            self.scanned = self.scanned.min(KEPT);
        }
        if end.is_none() {
            return Ok(None);
        }
        let line = bytes.split_to(std::mem::take(&mut self.scanned) + 1);
        Ok(Some(match self.start.take() {
            None => Line::Message(line),
            Some(start) => {
                Line::TooLong(LongLine::read(&String::from_utf8_lossy(&[&start[..], &line].concat())))
            }
        }))
    }

    fn decode_eof(&mut self, bytes: &mut BytesMut) -> io::Result<Option<Line>> {
        let decoded = self.decode(bytes)?;
        if decoded.is_none() {
            // The input ended inside a message.
            bytes.clear();
        }
        Ok(decoded)
    }
}

/// The output. Messages are queued in their order. The first task that gets the writer also writes those of the others.
pub(crate) struct Output<W> {
    queue: Mutex<Queue>,
    writer: tokio::sync::Mutex<Writer<W>>,
}

#[derive(Default)]
struct Queue {
    bytes: BytesMut,
    /// The number of bytes that were ever queued.
    end: u64,
}

struct Writer<W> {
    stream: W,
    /// Bytes of the queue that are not written yet. They stay here if the task that writes them is canceled.
    taken: BytesMut,
    /// The number of bytes that were ever written.
    written: u64,
}

impl<W: AsyncWrite + Unpin> Output<W> {
    pub(crate) fn new(stream: W) -> Self {
        let writer = Writer { stream, taken: BytesMut::new(), written: 0 };
        Self { queue: Mutex::default(), writer: tokio::sync::Mutex::new(writer) }
    }

    /// Queues a message and returns its end.
    ///
    /// # Errors
    /// If it cannot be serialised.
    pub(crate) fn push<M: Serialize>(&self, message: &M) -> io::Result<u64> {
        let mut queue = self.queue();
        let start = queue.bytes.len();
        if let Err(error) = serde_json::to_writer((&mut queue.bytes).writer(), message) {
            queue.bytes.truncate(start);
            return Err(error.into());
        }
        queue.bytes.put_u8(b'\n');
        queue.end += (queue.bytes.len() - start) as u64;
        Ok(queue.end)
    }

    /// Writes the queue up to `end` or further.
    ///
    /// # Errors
    /// If the stream cannot be written.
    pub(crate) async fn write_until(&self, end: u64) -> io::Result<()> {
        let mut writer = self.writer.lock().await;
        let Writer { stream, taken, written } = &mut *writer;
        while *written < end {
            if taken.is_empty() {
                *taken = self.queue().bytes.split();
            }
            match stream.write_buf(taken).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                length => *written += length as u64,
            }
        }
        stream.flush().await
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
