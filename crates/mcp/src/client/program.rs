//! The transport to a program: one message a line.

use std::io;
use std::sync::Arc;

use futures_util::StreamExt;
use rmcp::RoleClient;
use rmcp::model::{ClientNotification, ClientRequest, JsonRpcMessage, RequestId};
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::FramedRead;

use super::answer::{Received, Warn, read, unusable};
use crate::lines::{Line, Lines, LongLine, Output, TOO_LARGE};

/// Maximum length of a line in a warning, in characters.
const MAX_SHOWN: usize = 100;

/// The transport to a program.
pub(super) struct ProgramTransport {
    input: FramedRead<Box<dyn AsyncRead + Send + Unpin>, Lines>,
    /// `None` after the connection was closed.
    output: Option<Arc<Output<Box<dyn AsyncWrite + Send + Unpin>>>>,
    /// The requests without an answer.
    open: Vec<RequestId>,
    /// `None` after a warning.
    warn: Option<Warn>,
}

impl ProgramTransport {
    pub(super) fn new(
        input: Box<dyn AsyncRead + Send + Unpin>,
        output: Box<dyn AsyncWrite + Send + Unpin>,
        warn: Warn,
    ) -> Self {
        let (input, output) = (FramedRead::new(input, Lines::default()), Arc::new(Output::new(output)));
        Self { input, output: Some(output), open: Vec::new(), warn: Some(warn) }
    }

    /// Warns once: a program may print many such lines.
    fn warn(&mut self, line: &str) {
        if let Some(warn) = self.warn.take_if(|_| !line.is_empty()) {
            let shown: String = line.chars().take(MAX_SHOWN).collect();
            warn(format!("prints lines on stdout that are not JSON-RPC and are ignored, such as `{shown}`"));
        }
    }

    /// Returns the end of the request that a message answers which is too large.
    fn end_of_long(&self, message: &LongLine) -> Option<Received> {
        let request = match (&message.id, self.open.as_slice()) {
            (None, [only]) => Some(only),
            (id, open) => open
                .iter()
                .find(|request| id.as_ref().is_some_and(|id| id.to_string() == request.to_string())),
        };
        request.filter(|_| !message.is_request).map(|request| unusable(request, TOO_LARGE))
    }
}

impl Transport<RoleClient> for ProgramTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        match &message {
            // It is answered when the connection ends.
            JsonRpcMessage::Request(request)
                if matches!(request.request, ClientRequest::SubscriptionsListenRequest(_)) => {}
            JsonRpcMessage::Request(request) => self.open.push(request.id.clone()),
            JsonRpcMessage::Notification(sent) => {
                if let ClientNotification::CancelledNotification(canceled) = &sent.notification {
                    self.open.retain(|request| Some(request) != canceled.params.request_id.as_ref());
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        let queued = self.output.as_ref().map(|output| (Arc::clone(output), output.push(&message)));
        async move {
            let (output, end) = queued.ok_or(io::ErrorKind::NotConnected)?;
            output.write_until(end?).await
        }
    }

    async fn receive(&mut self) -> Option<Received> {
        loop {
            let message = match self.input.next().await?.ok()? {
                Line::Message(line) => match read(&line, &self.open, false) {
                    Ok(Some(message)) => message,
                    Ok(None) => continue,
                    Err(_) => {
                        self.warn(String::from_utf8_lossy(&line).trim());
                        continue;
                    }
                },
                Line::TooLong(line) => match self.end_of_long(&line) {
                    Some(message) => message,
                    None => continue,
                },
            };
            let answered = match &message {
                JsonRpcMessage::Response(response) => Some(&response.id),
                JsonRpcMessage::Error(error) => error.id.as_ref(),
                JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
            };
            self.open.retain(|request| Some(request) != answered);
            return Some(message);
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // Closes the stdin of the program.
        self.output = None;
        Ok(())
    }
}
