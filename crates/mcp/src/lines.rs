//! The transport of a client on a pair of streams: one message a line. Messages that are ready at the same time are
//! written at once, as each write costs more than its message.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use rmcp::RoleServer;
use rmcp::model::{ErrorData, JsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::{JsonRpcMessageCodec, JsonRpcMessageCodecError};
use serde_json::error::Category;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio_util::bytes::{BufMut, BytesMut};
use tokio_util::codec::{Decoder, FramedRead};

use crate::server::MAX_MESSAGE;

type Received = RxJsonRpcMessage<RoleServer>;
type Sent = TxJsonRpcMessage<RoleServer>;

/// The transport of one client.
pub(crate) struct LineTransport<R, W> {
    input: FramedRead<R, Messages>,
    output: Arc<Output<W>>,
    /// The end of the last answer to an invalid message, if it is not written yet.
    refusal: Option<u64>,
}

impl<R: AsyncRead, W: AsyncWrite + Unpin> LineTransport<R, W> {
    pub(crate) fn new(input: R, output: W) -> Self {
        let codec = JsonRpcMessageCodec::new_with_max_length(MAX_MESSAGE);
        let writer = Writer { stream: output, taken: BytesMut::new(), written: 0 };
        let output = Output { queue: Mutex::default(), writer: tokio::sync::Mutex::new(writer) };
        Self { input: FramedRead::new(input, Messages(codec)), output: Arc::new(output), refusal: None }
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
            match self.input.next().await?.ok()? {
                Ok(message) => return Some(message),
                Err(Invalid) => {
                    let error = ErrorData::invalid_request("Invalid request", None);
                    self.refusal = Some(self.output.push(&JsonRpcMessage::error(error, None)).ok()?);
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// JSON that is not a message.
struct Invalid;

/// Decodes lines. One that is not a message does not end the stream.
struct Messages(JsonRpcMessageCodec<Received>);

impl Decoder for Messages {
    type Item = Result<Received, Invalid>;
    type Error = io::Error;

    fn decode(&mut self, bytes: &mut BytesMut) -> io::Result<Option<Self::Item>> {
        loop {
            let length = bytes.len();
            match self.0.decode(bytes) {
                Ok(Some(message)) => return Ok(Some(Ok(message))),
                Ok(None) if bytes.len() == length => return Ok(None),
                // The codec skipped a line.
                Ok(None) => {}
                Err(JsonRpcMessageCodecError::Serde(error)) if error.classify() == Category::Data => {
                    return Ok(Some(Err(Invalid)));
                }
                Err(JsonRpcMessageCodecError::Io(error)) => return Err(error),
                // Not JSON, or too long. An answer could cause another one at a peer that also answers such lines.
                Err(_) => {}
            }
        }
    }

    fn decode_eof(&mut self, bytes: &mut BytesMut) -> io::Result<Option<Self::Item>> {
        let decoded = self.decode(bytes)?;
        if decoded.is_none() {
            // The input ended inside a message.
            bytes.clear();
        }
        Ok(decoded)
    }
}

/// The output. Messages are queued in their order. The first task that gets the writer also writes those of the others.
struct Output<W> {
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
    /// Queues a message and returns its end.
    ///
    /// # Errors
    /// If it cannot be serialised.
    fn push(&self, message: &Sent) -> io::Result<u64> {
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
    async fn write_until(&self, end: u64) -> io::Result<()> {
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
